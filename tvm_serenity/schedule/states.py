"""States and moves of the order search in plain Python; sets of ops are bit masks."""

from collections.abc import Iterator
from dataclasses import dataclass, field


def bits(mask: int) -> Iterator[int]:
    """Yield the members of the bit set ``mask``, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass
class Closure:
    """A closure C(t) or C(u): the ops that must run until storage t can die or u has run (R1)."""

    mask: int
    weight: int = 0
    workspace_op: int = -1
    takers: list[int] = field(default_factory=list)
    covers: list[int] = field(default_factory=list)
    covered: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SearchState:
    """A state: the finished ops, the complete closures, and the closures that may be moves."""

    mask: int
    complete: int
    active: tuple[int, ...]
    live: int


@dataclass(frozen=True, slots=True)
class Move:
    """A move, which runs a block of ops.

    ``live``: live bytes after it. ``key``: its largest need in bytes. ``last``: the op that must
    run last, or -1. ``commits``: whether no alternatives are needed (R2).
    """

    live: int
    key: int
    id: int
    block: int
    last: int
    commits: bool


@dataclass(slots=True)
class Group:
    """Candidate moves with the same block."""

    id: int
    block: int
    size: int
    workspace_op: int
    minimal: bool
    takers: list[int]
