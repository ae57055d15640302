"""Placements compared pair by pair, from the definition: the specification of ``check_plan``."""

from collections.abc import Sequence
from itertools import combinations

from tvm_serenity.plan import Buffer


def wrong_pairs(buffers: Sequence[Buffer], offsets: Sequence[int]) -> set[frozenset[str]]:
    """The names of all two buffers that are live at a common step and share bytes they may not."""
    placed = zip(buffers, offsets, strict=True)
    return {
        frozenset((one.name, two.name))
        for (one, at), (two, there) in combinations(placed, 2)
        if max(one.lower, two.lower) < min(one.upper, two.upper)
        and max(at, there) < min(at + one.size_bytes, there + two.size_bytes)
        and not (_allowed(one, at, two, there) or _allowed(two, there, one, at))
    }


def _allowed(one: Buffer, at: int, two: Buffer, there: int) -> bool:
    """Whether the first buffer may share bytes with the second one as they lie."""
    if one.may_overlap != two.name:
        return False
    if one.overlap == "below":
        return at + one.distance_bytes <= there
    return one.overlap == "any" or at == there
