"""The best build for a goal, and the Pareto front of all builds."""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm_serenity.boards import Board
from tvm_serenity.firmware.building import Origin
from tvm_serenity.fitting.goal import FitGoal
from tvm_serenity.fitting.measure import BuildFigures
from tvm_serenity.options.goal import ENERGY, FLASH, RAM, TIME

ORDERS = {
    TIME: (2, 3, 0, 1),
    ENERGY: (2, 3, 0, 1),
    RAM: (0, 1, 2, 3),
    FLASH: (1, 0, 2, 3),
}
"""The order in which RAM, flash, time and calls count, by objective."""


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """The result of a search: ``points`` are all measured builds, ``front`` the Pareto front.

    ``chosen``: the best build that keeps all limits, None if no build does. No build of these kinds
    has an arena below ``lower_bound_bytes`` (0: unknown; ``fitted`` says what the bound covers).
    ``left_out``: the reasons why kinds of builds were not tried. ``complete``: False if the time
    limit ended the search.
    """

    board: Board
    goal: FitGoal
    origin: Origin
    points: tuple[BuildFigures, ...]
    front: tuple[BuildFigures, ...]
    chosen: BuildFigures | None
    lower_bound_bytes: int
    left_out: tuple[str, ...]
    complete: bool
    seconds: float


def front_of(points: Sequence[BuildFigures]) -> tuple[BuildFigures, ...]:
    """Return the Pareto front of ``points`` in RAM, flash and time, by ascending RAM.

    A run without a time counts as the slowest; of equal builds the first is kept.
    """
    kept: list[BuildFigures] = []
    for one in points:
        if any(_at_most(other, one) for other in kept):
            continue
        kept = [other for other in kept if not _at_most(one, other)]
        kept.append(one)
    return tuple(sorted(kept, key=lambda one: (one.ram_bytes, one.flash_bytes)))


def best_of(points: Sequence[BuildFigures], goal: FitGoal) -> BuildFigures | None:
    """Return the best point for ``goal`` among the points that keep its limits.

    Builds without a timed run come after the timed ones, those with fewer calls first.
    """
    allowed = [one for one in points if goal.met(one)]
    order = ORDERS[goal.minimise]
    return min(allowed, key=lambda one: [_ranks(one)[k] for k in order], default=None)


def _figures(one: BuildFigures) -> tuple[float, float, float]:
    time = float("inf") if one.run is None else one.run.middle
    return one.ram_bytes, one.flash_bytes, time


def _ranks(one: BuildFigures) -> tuple[float, float, float, int]:
    return *_figures(one), one.candidate.calls


def _at_most(a: BuildFigures, b: BuildFigures) -> bool:
    return all(x <= y for x, y in zip(_figures(a), _figures(b), strict=True)) and a.fits >= b.fits
