"""Chooses the arena offset of the resident inputs, which are in memory from the start."""

from collections.abc import Sequence

from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.place import held_bytes, input_alignment, place_bands
from tvm_serenity.rows.split import Banded
from tvm_serenity.search.deadline import seconds_left, within

BASES = 12
"""Number of candidate offsets in the first round."""
SLACK = 75
"""The inputs may end above the order's peak by at most the peak divided by this number."""
BASES_SHARE = 0.3
"""Share of the time limit that the search for an offset may take."""


def bases_below(banded: Banded) -> list[int]:
    """Return input offsets in bytes, ascending, that leave space for an overlapping row below.

    At such an offset, the first row that is computed from a resident input and overlaps it begins
    at or just above the arena's start.
    """
    distances = {
        distance
        for layer in banded.network.layers
        for feature, distance in zip(layer.inputs, layer.over, strict=False)
        if feature in banded.held and distance is not None
    }
    align = input_alignment(banded)
    return [-(-distance // align) * align for distance in sorted(distances)]


def promising_base(banded: Banded, order: Sequence[int], peak: int, limits: Limits) -> int:
    """Return the input offset in bytes with the smallest arena among several candidates.

    At a higher offset, dead input rows form one free block with the memory below the inputs. The
    search halves the distance between candidates around the best offset, until the distance is one
    unit of alignment or a share of the time limit is used up.
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
