"""The options and the result of a search for an order of connections."""

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
"""Seconds per connection: of the construction and simulation of an order; of annealing before its
first move; of the check and simulation of a search's result; of each additional delay of dirty
values that is tried."""
LARGE = 25_000
"""Number of connections from which incremental annealing is faster under write-aware MIN."""


@dataclass(frozen=True)
class Progress:
    """A progress report of a search: the method, its iterations, the fewest I/Os so far."""

    order: str
    iterations: int
    best: int
    seconds: float


@dataclass(frozen=True)
class Annealing:
    """Hyperparameters of Connection Reordering (section IV; experiments in section VI.A).

    ``window``: ws; the default is four times the mean in-degree. ``cooling``: sigma. ``blocks``:
    the fraction of moves that move a block of at most ``block`` connections instead of a window; 0
    is the paper's method. ``first_iteration``: t of the first iteration; a larger t is cooler.
    ``incremental``: simulate only the part of the order that a move changes, which has the same
    result. By default, it is True where it is faster: under ``min``, and under ``min-write-aware``
    from ``LARGE`` connections on.
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
                f"annealing: iterations={self.iterations} must be 0 or more, and "
                f"first_iteration={self.first_iteration} must be 1 or more"
            )
        if self.window is not None and self.window < 1:
            raise InputError(f"window {self.window}: it must be at least 1 connection")
        if not 0 <= self.blocks <= 1 or self.block < 1:
            raise InputError(
                f"annealing: blocks={self.blocks} must be a fraction of moves from 0 to 1, and "
                f"block={self.block} must be 1 connection or more"
            )
        if self.cooling < 0:
            raise InputError(f"cooling rate {self.cooling}: it must be at least 0")

    def window_of(self, net: FFNN) -> int:
        """Return the window length ws for ``net``, in connections."""
        mean = net.connections / (net.neurons - net.given)
        return self.window or 4 * max(1, round(mean))

    def incremental_of(self, net: FFNN, policy: Policy) -> bool:
        """Return whether iterations on ``net`` simulate only what a move changes."""
        if self.incremental is not None:
            return self.incremental
        return policy is Policy.MIN or net.connections >= LARGE


@dataclass(frozen=True)
class OrderOptions:
    """Options of a search for the order with the fewest I/Os.

    ``memory``: number of values in fast memory. ``policy``: its eviction policy. ``time_limit_s``:
    ends the search with the best order so far, as Ctrl-C and a deadline (``within``) do. Without
    these, the result depends only on the other options and ``seed``.
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
            raise InputError(f"a time limit of {self.time_limit_s} s; it must be above 0 s")

    def lasting(self, seconds: float | None) -> "OrderOptions":
        """Return these options with a time limit of ``seconds``."""
        return replace(self, time_limit_s=seconds)

    def clock(self, net: FFNN, after_s: float = ORDER_S) -> Callable[[], float]:
        """Return a function that returns the seconds left until the time limit and the deadline.

        The time for the work after the search is subtracted: ``after_s`` seconds per connection of
        ``net``, and the simulation of an order.
        """
        aware = self.policy is Policy.MIN_WRITE_AWARE
        further = len(delays(self.memory)) - 1 if aware else 0
        after = (after_s + further * DELAY_S) * net.connections
        end = math.inf if self.time_limit_s is None else time.perf_counter() + self.time_limit_s
        return lambda: min(end - time.perf_counter(), seconds_left()) - after

    def delay(self, net: FFNN, order: Ints) -> int:
        """Return the delay of dirty values that a search uses: the best delay for ``order``."""
        aware = self.policy is Policy.MIN_WRITE_AWARE
        return best_delay(net, order, self.memory) if aware else 0


@dataclass(frozen=True)
class Ordered:
    """An order and its I/Os; ``limit`` tells whether time or an interrupt ended the search."""

    order: Ints
    traffic: Traffic
    method: str
    seconds: float = 0.0
    limit: str = ""
    statistics: dict[str, float | int | str] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The sum of reads and writes."""
        return self.traffic.total


def measured(
    net: FFNN, order: Ints, settings: OrderOptions, method: str, **statistics: float | int | str
) -> Ordered:
    """Simulate ``order`` and return it with its I/Os."""
    traffic = simulate(net, order, settings.memory, settings.policy)
    return Ordered(order, traffic, method, statistics=statistics)
