"""The options of a search for an order, and its result."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tvm_serenity.errors import InputError
from tvm_serenity.search.deadline import seconds_left
from tvm_serenity.sparse.network import FFNN, Ints
from tvm_serenity.sparse.simulate import (
    Policy,
    Traffic,
    best_delay,
    delays,
    memory_of,
    policy_of,
    simulate,
)

INTERRUPT, TIME = "interrupt", "time"
ORDER_S, ANNEAL_S, ENDING_S, DELAY_S = 3e-7, 2e-7, 1e-7, 5e-8
"""Seconds a connection that an order and its I/Os take; that annealing takes before its first
move; that it takes to check and simulate what a search has found; and each further delay of dirty
values that is tried."""
LARGE = 25_000
"""Connections from which incremental annealing is faster under write-aware MIN."""


@dataclass(frozen=True)
class Progress:
    """Progress of a search."""

    order: str
    iterations: int
    best: int
    seconds: float


@dataclass(frozen=True)
class Annealing:
    """Hyperparameters of Connection Reordering (section IV, experiments of section VI.A).

    ``window``: ws, default four times the mean in-degree. ``cooling``: sigma. ``blocks``: the share
    of moves that are no window but a block of at most ``block`` connections; 0 is the paper's
    method. ``first_iteration``: t of the first one; later is cooler. ``incremental``: an iteration
    simulates only what its move changed; the trajectory is the same. Default: where it pays, under
    ``min`` always, under ``min-write-aware`` from ``LARGE`` connections on.
    """

    iterations: int = 1_000_000
    window: int | None = None
    cooling: float = 0.2
    blocks: float = 0.0
    block: int = 3
    first_iteration: int = 1
    incremental: bool | None = None

    def __post_init__(self) -> None:
        if self.iterations < 0 or self.first_iteration < 1:
            raise InputError(
                "annealing runs at least 0 iterations, the first of them is at least 1"
            )
        if self.window is not None and self.window < 1:
            raise InputError(f"window {self.window}: it must be at least 1 connection")
        if not 0 <= self.blocks <= 1 or self.block < 1:
            raise InputError(
                f"{self.blocks} of the moves are blocks of {self.block} connections: "
                "a share from 0 to 1, at least 1 connection"
            )
        if self.cooling < 0:
            raise InputError(f"cooling rate {self.cooling}: it must be at least 0")

    def window_of(self, net: FFNN) -> int:
        """Return ws for ``net``."""
        mean = net.connections / (net.neurons - net.given)
        return self.window or 4 * max(1, round(mean))

    def incremental_of(self, net: FFNN, policy: Policy) -> bool:
        """Return whether iterations on ``net`` are incremental."""
        if self.incremental is not None:
            return self.incremental
        return policy is Policy.MIN or net.connections >= LARGE


@dataclass(frozen=True)
class OrderOptions:
    """Options of a search: least I/Os with ``memory`` values under ``policy``.

    ``time_limit_s`` ends a search with its best order so far; so do Ctrl-C and a deadline
    (``within``). Without them the result depends on the other options and ``seed`` only.
    """

    memory: int
    policy: Policy = Policy.MIN
    seed: int = 0
    time_limit_s: float | None = None
    annealing: Annealing = field(default_factory=Annealing)
    progress: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        memory_of(self.memory)
        object.__setattr__(self, "policy", policy_of(self.policy))
        if self.time_limit_s is not None and not self.time_limit_s > 0:
            raise InputError(f"time limit {self.time_limit_s}: it must be above 0 seconds")

    def lasting(self, seconds: float | None) -> "OrderOptions":
        """Return the same with another time limit."""
        return replace(self, time_limit_s=seconds)

    def clock(self, net: FFNN, after_s: float = ORDER_S) -> Callable[[], float]:
        """Return a function that says how many seconds are left of the limit and the deadline.

        Less what follows: ``after_s`` a connection of ``net``, an order's simulation with it.
        """
        aware = self.policy is Policy.MIN_WRITE_AWARE
        further = len(delays(self.memory)) - 1 if aware else 0
        after = (after_s + further * DELAY_S) * net.connections
        end = math.inf if self.time_limit_s is None else time.perf_counter() + self.time_limit_s
        return lambda: min(end - time.perf_counter(), seconds_left()) - after

    def delay(self, net: FFNN, order: Ints) -> int:
        """Return the delay of dirty values a search keeps to: the best one for its start."""
        aware = self.policy is Policy.MIN_WRITE_AWARE
        return best_delay(net, order, self.memory) if aware else 0


@dataclass(frozen=True)
class Ordered:
    """An order and its I/Os; ``limit`` says whether time or an interrupt ended the search."""

    order: Ints
    traffic: Traffic
    method: str
    seconds: float = 0.0
    limit: str = ""
    statistics: dict[str, float | int | str] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Reads and writes."""
        return self.traffic.total


def measured(
    net: FFNN, order: Ints, settings: OrderOptions, method: str, **statistics: float | int | str
) -> Ordered:
    """Return ``order`` with its I/Os."""
    traffic = simulate(net, order, settings.memory, settings.policy)
    return Ordered(order, traffic, method, statistics=statistics)
