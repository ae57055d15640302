"""Where the inputs that are in memory from the start should begin."""

from collections.abc import Sequence

from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.place import held_bytes, input_alignment, place_bands
from tvm_serenity.rows.split import Banded
from tvm_serenity.search.deadline import seconds_left, within

BASES = 12
"""Places that are tried first."""
SLACK = 75
"""One part in so many of the peak is what a place may cost."""
BASES_SHARE = 0.3
"""Of a time limit, for looking for such a place."""


def bases_below(banded: Banded) -> list[int]:
    """Where inputs begin so that the first row that is made of them begins below."""
    far = {
        distance
        for layer in banded.network.layers
        for feature, distance in zip(layer.inputs, layer.over, strict=False)
        if feature in banded.resident and distance is not None
    }
    align = input_alignment(banded)
    return [-(-distance // align) * align for distance in sorted(far)]


def promising_base(banded: Banded, order: Sequence[int], peak: int, limits: Limits) -> int:
    """Where inputs should begin: the best of some places between the arena's start and its end.

    Further up, rows that are done with leave one free block with what lies below. Around the best
    place it is looked ever closer, until a share of the time limit ends.
    """
    align = input_alignment(banded)
    room = max(0, peak + peak // SLACK - held_bytes(banded)) // align
    arenas: dict[int, int] = {}

    def best() -> int:
        return min(arenas, key=lambda base: (arenas[base], base))

    with within(BASES_SHARE * limits.time_limit_s):
        step = max(1, room // BASES)
        near = range(step, room + 1, step) or range(room, room + 1)
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
            near = range(max(0, best() - step), min(room, best() + step) + 1, step)
