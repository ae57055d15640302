"""Chooses where the inputs that are in memory from the start begin in the arena."""

from collections.abc import Sequence

from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.place import held_bytes, input_alignment, place_bands
from tvm_serenity.rows.split import Banded
from tvm_serenity.search.deadline import seconds_left, within

BASES = 12
"""Candidate offsets in the first round."""
SLACK = 75
"""An offset may cost the peak divided by this number."""
BASES_SHARE = 0.3
"""Share of a time limit for the search of an offset."""


def bases_below(banded: Banded) -> list[int]:
    """Return input offsets at which the first row computed from an input begins right below it."""
    far = {
        distance
        for layer in banded.network.layers
        for feature, distance in zip(layer.inputs, layer.over, strict=False)
        if feature in banded.resident and distance is not None
    }
    align = input_alignment(banded)
    return [-(-distance // align) * align for distance in sorted(far)]


def promising_base(banded: Banded, order: Sequence[int], peak: int, limits: Limits) -> int:
    """Return the best of several input offsets between the arena's start and its end.

    At a higher offset, dead rows form one free block with the memory below. The search narrows its
    step around the best offset until a share of the time limit ends.
    """
    align = input_alignment(banded)
    highest = max(0, peak + peak // SLACK - held_bytes(banded)) // align
    arenas: dict[int, int] = {}

    def best() -> int:
        return min(arenas, key=lambda base: (arenas[base], base))

    with within(BASES_SHARE * limits.time_limit_s):
        step = max(1, highest // BASES)
        near = range(step, highest + 1, step) or range(highest, highest + 1)
        while True:
            for base in near:
                if arenas and seconds_left() == 0:
                    return align * best()
                if base not in arenas:
                    placed = place_bands(banded, order, limits.nearby, base * align)[1]
                    arenas[base] = placed.arena_bytes
            if step == 1:
                return align * best()
            step = (step + 1) // 2
            near = range(max(0, best() - step), min(highest, best() + step) + 1, step)
