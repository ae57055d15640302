"""How long the searches for bands look: steps, which are the same on a busy machine, and time."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

from tvm_serenity.plan import PlanOptions
from tvm_serenity.schedule import Options as SearchOptions
from tvm_serenity.schedule.result import Progress

SEARCHES = 4
"""About so many searches one after the other choose bands."""
PARTS = 3
"""Time limits of one network: an order, its placement, that with inputs elsewhere."""
ORDER_STEPS, PLACE_STEPS = 1_000_000, 200_000
"""Of the search for an order, and of a placement; some seconds on a desktop computer."""
NEARBY_STEPS = 5_000
"""Of the placement of an order near one that is placed, or of one place for the inputs."""
NEARBY = 20
"""So many orders near the best one are placed."""
TILES_EFFORT = 4.0
"""So many times the steps where layers are made in tiles: with workspace arenas pack less well."""
COARSER_OPS = 40_000
"""Operators of bands that are made coarser, each try counted."""


@dataclass(frozen=True)
class Limits:
    """How far to look for the order and for each of two placements: the work, and at most seconds.

    ``effort``: a multiple of the usual work, in steps of the searches. With it alone the result is
    the same however busy the machine is; ``time_limit_s`` cuts it short. What rows that lie over
    others save is looked for as long again. ``progress`` is called by the order search now and
    then.
    """

    time_limit_s: float = inf
    seed: int = 0
    progress: Callable[[Progress], None] | None = None
    effort: float = 1.0

    @staticmethod
    def within(
        total_s: float | None, progress: Callable[[Progress], None] | None = None
    ) -> "Limits":
        """Return the limits of searches that share ``total_s``; None: effort alone ends them."""
        usual = Limits(progress=progress)
        return usual if total_s is None else replace(usual, time_limit_s=total_s / SEARCHES)

    @property
    def of_tiles(self) -> "Limits":
        """The same for chains in tiles of columns."""
        return replace(self, effort=TILES_EFFORT * self.effort)

    @property
    def order(self) -> SearchOptions:
        """Options of the search for an order."""
        steps = round(self.effort * ORDER_STEPS)
        return SearchOptions(time_limit_s=self.time_limit_s, steps=steps, progress=self.progress)

    @property
    def place(self) -> PlanOptions:
        """Options of the placement of one order: two are placed, and some nearby."""
        steps = round(self.effort * PLACE_STEPS)
        return PlanOptions(time_limit_s=self.time_limit_s / 3, steps=steps, seed=self.seed)

    @property
    def nearby(self) -> PlanOptions:
        """Options of the placement of what differs little from an order that is placed."""
        steps = round(self.effort * NEARBY_STEPS)
        return PlanOptions(time_limit_s=self.time_limit_s / 12, steps=steps, seed=self.seed)

    @property
    def looked_at(self) -> int:
        """How many operators of bands made coarser are ordered, all tries together."""
        return round(self.effort * COARSER_OPS)

    @property
    def orders(self) -> int:
        """How many orders near the best one are placed."""
        return round(self.effort * NEARBY)
