"""Limits of the searches for bands: steps, which do not depend on the machine's load, and time."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

from tvm_serenity.plan import PlanOptions
from tvm_serenity.schedule import Options as SearchOptions
from tvm_serenity.schedule.result import Progress

SEARCHES = 4
"""Number of searches that choose bands one after the other, roughly."""
PARTS = 3
"""Time limits per network: for an order, its placement, and a placement with inputs elsewhere."""
ORDER_STEPS, PLACE_STEPS = 1_000_000, 200_000
"""Steps of an order search, and of a placement; a few seconds on a desktop computer."""
NEARBY_STEPS = 5_000
"""Steps of a placement near a known one: of a similar order, or of another input offset."""
NEARBY = 20
"""Number of orders near the best one to place."""
TILES_EFFORT = 4.0
"""Factor on the steps for layers in tiles, whose workspace makes placement harder."""
COARSER_OPS = 40_000
"""Limit on the operators of coarser bands over all attempts."""


@dataclass(frozen=True)
class Limits:
    """Limits of the order search and of each of two placements: work, and seconds at most.

    ``effort`` is a multiple of the usual work, in steps of the searches. With it alone the result
    does not depend on the machine's load; ``time_limit_s`` can end the search earlier. The search
    for overlapping rows gets the same limits again. ``progress`` is called by the order search
    regularly.
    """

    time_limit_s: float = inf
    seed: int = 0
    progress: Callable[[Progress], None] | None = None
    effort: float = 1.0

    @staticmethod
    def within(
        total_s: float | None, progress: Callable[[Progress], None] | None = None
    ) -> "Limits":
        """Return the limits of searches that share ``total_s`` seconds; None: effort alone."""
        usual = Limits(progress=progress)
        return usual if total_s is None else replace(usual, time_limit_s=total_s / SEARCHES)

    @property
    def of_tiles(self) -> "Limits":
        """The limits for chains in tiles of columns."""
        return replace(self, effort=TILES_EFFORT * self.effort)

    @property
    def order(self) -> SearchOptions:
        """Options of the order search."""
        steps = round(self.effort * ORDER_STEPS)
        return SearchOptions(time_limit_s=self.time_limit_s, steps=steps, progress=self.progress)

    @property
    def place(self) -> PlanOptions:
        """Options of one placement; two orders are placed, and some nearby."""
        steps = round(self.effort * PLACE_STEPS)
        return PlanOptions(time_limit_s=self.time_limit_s / 3, steps=steps, seed=self.seed)

    @property
    def nearby(self) -> PlanOptions:
        """Options of a placement that differs little from a known one."""
        steps = round(self.effort * NEARBY_STEPS)
        return PlanOptions(time_limit_s=self.time_limit_s / 12, steps=steps, seed=self.seed)

    @property
    def looked_at(self) -> int:
        """Limit on the operators of coarser bands to order, over all attempts."""
        return round(self.effort * COARSER_OPS)

    @property
    def orders(self) -> int:
        """Number of orders near the best one to place."""
        return round(self.effort * NEARBY)
