"""Limits of the searches in row streaming: numbers of steps, and seconds.

A limit in steps makes a result independent of the machine's load.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

from tvm_serenity.plan import PlanOptions
from tvm_serenity.schedule import Options as SearchOptions
from tvm_serenity.schedule.result import Progress

SEARCHES = 4
"""Approximate number of searches that the choice of bands runs in sequence."""
PARTS = 3
"""Number of time limits per network: one each for the order, its placement, and the placement at
another input offset."""
ORDER_STEPS, PLACE_STEPS = 1_000_000, 200_000
"""Steps of an order search and of a placement; each takes a few seconds on a desktop computer."""
NEARBY_STEPS = 5_000
"""Steps of a placement that varies a known one: by a similar order or another input offset."""
NEARBY = 20
"""Number of orders near the best one to place."""
TILES_EFFORT = 4.0
"""Factor on the steps for layers in tiles, whose workspace makes placement harder."""
COARSER_OPS = 40_000
"""Limit on the total number of operators in all graphs that are built for coarser bands."""


@dataclass(frozen=True)
class Limits:
    """Limits of an order search and of each of its two placements.

    ``effort`` multiplies the default numbers of steps. Without a ``time_limit_s`` the result does
    not depend on the machine's load; the time limit may end a search earlier. The search for
    overlapping rows has the same limits once more. The order search calls ``progress`` regularly.
    """

    time_limit_s: float = inf
    seed: int = 0
    progress: Callable[[Progress], None] | None = None
    effort: float = 1.0

    @staticmethod
    def within(
        total_s: float | None, progress: Callable[[Progress], None] | None = None
    ) -> "Limits":
        """Return limits with which all searches take ``total_s`` seconds in total (None: any)."""
        usual = Limits(progress=progress)
        return usual if total_s is None else replace(usual, time_limit_s=total_s / SEARCHES)

    @property
    def of_tiles(self) -> "Limits":
        """These limits with more steps, for networks with layers in tiles."""
        return replace(self, effort=TILES_EFFORT * self.effort)

    @property
    def order(self) -> SearchOptions:
        """Options of the order search."""
        steps = round(self.effort * ORDER_STEPS)
        return SearchOptions(time_limit_s=self.time_limit_s, steps=steps, progress=self.progress)

    @property
    def place(self) -> PlanOptions:
        """Options of one placement: a third of the time limit."""
        steps = round(self.effort * PLACE_STEPS)
        return PlanOptions(time_limit_s=self.time_limit_s / 3, steps=steps, seed=self.seed)

    @property
    def nearby(self) -> PlanOptions:
        """Options of a placement that varies a known one."""
        steps = round(self.effort * NEARBY_STEPS)
        return PlanOptions(time_limit_s=self.time_limit_s / 12, steps=steps, seed=self.seed)

    @property
    def looked_at(self) -> int:
        """Limit on the total number of operators in all graphs that are built for coarser bands."""
        return round(self.effort * COARSER_OPS)

    @property
    def orders(self) -> int:
        """Number of orders similar to the best one that are placed."""
        return round(self.effort * NEARBY)
