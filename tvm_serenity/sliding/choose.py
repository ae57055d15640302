"""What to keep and what to make again: the least memory for the work, and the least work for it.

Every set of features that are made again is a way to run the network. All of them are gone through,
least work first; of one whose blocks alone are as large as an arena that is known no step is made:
it needs no less memory, and no less work. What is left is ordered and placed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from tvm_serenity.errors import InputError
from tvm_serenity.rows.limits import Limits
from tvm_serenity.sliding.steady import MovedWindow, Steady
from tvm_serenity.sliding.step import SlidingStep, sliding_step

MOST = 12
"""Features that may be kept or made again: so many of them are 4,096 ways."""


@dataclass(frozen=True)
class StepPoint:
    """A step that no other beats in work and arena; ``work``: operations, a whole window's are 1.

    ``again``: the features of which rows would stay, and none is kept.
    """

    step: SlidingStep
    work: float
    again: tuple[int, ...]


def work_of(steady: Steady, operations: Sequence[float]) -> float:
    """Return the operations of a step, as a share of those of a whole window."""
    made = sum(
        count * steady.rows_made(i) / max(1, steady.rows_in_all(i))
        for i, count in enumerate(operations)
    )
    return made / max(sum(operations), 1e-30)


def curve(
    moved: MovedWindow, operations: Sequence[float], limits: Limits | None = None
) -> tuple[StepPoint, ...]:
    """Return the steps that no other beats, least work first, each with less memory than before.

    Exact where every step's placement is proved least. Raises :class:`InputError` where more than
    ``MOST`` features might be kept.
    """
    features = moved.may_be_kept
    if len(features) > MOST:
        raise InputError(
            f"{moved.network.name}: {len(features)} features may be kept or made again; all ways "
            f"are gone through for {MOST} at most"
        )
    ways: dict[object, tuple[float, tuple[int, ...], Steady]] = {}
    for count in range(len(features) + 1):
        for again in combinations(features, count):
            found = moved.steady(frozenset(again))
            ways.setdefault(found.kept, (work_of(found, operations), again, found))
    front: list[StepPoint] = []
    for work, again, found in sorted(ways.values(), key=lambda way: (way[0], way[2].kept_bytes)):
        least = front[-1].step.arena_bytes if front else None
        if least is not None and found.kept_bytes >= least:
            continue
        step = sliding_step(found, limits)
        if least is None or step.arena_bytes < least:
            if front and front[-1].work == work:
                front.pop()
            front.append(StepPoint(step, work, again))
    return tuple(front)


def within_bytes(points: Sequence[StepPoint], ram_bytes: int) -> StepPoint | None:
    """Return the step of least work whose arena has so many bytes at most; None: none has."""
    return next((one for one in points if one.step.arena_bytes <= ram_bytes), None)
