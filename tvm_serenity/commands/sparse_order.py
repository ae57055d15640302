"""``sparse order``: order the connections of a sparse network for few I/Os."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import Any

from tvm_serenity.commands.sparse_network import (
    EDGES_FILE,
    MEMORY,
    SECONDS_LIMIT,
    NamedNetwork,
    NetworkOptions,
    subject,
)
from tvm_serenity.options.option import HelpGroup, Option, option
from tvm_serenity.search.deadline import within
from tvm_serenity.sparse import FFNN, Policy
from tvm_serenity.sparse.edges import write_edges
from tvm_serenity.sparse.orders import (
    CONSTRUCTED,
    ORDERS,
    Annealing,
    Ordered,
    OrderOptions,
    Progress,
)
from tvm_serenity.sparse.orders import order as ordered
from tvm_serenity.sparse.orders.result import TIME
from tvm_serenity.sparse.phases import phase_bound
from tvm_serenity.sparse.simulate import policy_of

Told = Callable[[NamedNetwork], AbstractContextManager[Callable[[Progress], None] | None]]
"""A function that returns the progress display of the search for a network's order."""


@dataclass(frozen=True, kw_only=True)
class OrderSearch(NetworkOptions):
    """The options of a search for an order.

    ``memory``: values of fast memory. ``policy``: eviction policy. ``order``: search method.
    ``iterations``: limit of annealing.
    """

    memory: int = option(100, MEMORY)
    policy: str = option(
        "min",
        Option(
            flag="--policy", help="Eviction policy.", group=HelpGroup.MEMORY, choices=tuple(Policy)
        ),
    )
    order: str = option(
        "auto",
        Option(
            flag="--order",
            help="Search for the order.",
            group=HelpGroup.SPEED,
            choices=tuple(ORDERS),
            metavar="ORDER",
        ),
    )
    time_limit_s: float | None = option(None, SECONDS_LIMIT)
    iterations: int = option(
        1_000_000,
        Option(
            flag="--iterations",
            help="Limit of annealing iterations.",
            group=HelpGroup.SPEED,
            metavar="T",
            least=0,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class SparseOrderOptions(OrderSearch):
    """The options of ``sparse order``.

    ``bound``: also compute a lower bound of this network. ``output``: the file of the ordered
    connections.
    """

    bound: bool = option(
        False,
        Option(
            flag="--bound",
            help="Also compute a lower bound of this network.",
            group=HelpGroup.CHECKS,
        ),
    )
    output: str | None = option(None, EDGES_FILE)


@dataclass(frozen=True)
class OrderedNetwork:
    """The order of the connections of a network, and the initial order of the search."""

    network: NamedNetwork
    options: SparseOrderOptions
    start: Ordered
    found: Ordered
    phase_bound: int | None

    def json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        options, bound = self.options, self.phase_bound
        return {
            "network": self.network.name,
            **self.network.facts(),
            "memory": options.memory,
            "policy": str(policy_of(options.policy)),
            "seed": options.seed,
            "bounds": self.network.bounds(),
            **({} if bound is None else {"phase_bound": {"total": bound}}),
            "start": {**asdict(self.start.traffic), "total": self.start.total},
            "result": _result(self.network, self.found),
            "seconds": round(self.found.seconds, 6),
            "output": options.output,
        }


def order(
    options: SparseOrderOptions, told: Told = lambda _network: nullcontext()
) -> OrderedNetwork:
    """Return an order of a sparse network's connections with few reads and writes.

    Every order needs at least W + N + S I/Os; the initial order needs at most twice the minimum.
    """
    asked = subject(options)
    start, found = searched(asked, options, told)
    if options.output is not None:
        write_edges(asked.net, found.order, options.output)
    bound = phase_bound(asked.net, options.memory) if options.bound else None
    return OrderedNetwork(asked, options, start, found, bound)


def searched(
    asked: NamedNetwork, options: OrderSearch, told: Told = lambda _network: nullcontext()
) -> tuple[Ordered, Ordered]:
    """Return the initial order of a network, and the best one that the search finds."""
    with within(options.time_limit_s), told(asked) as progress:
        settings = OrderOptions(
            options.memory,
            policy_of(options.policy),
            options.seed,
            options.time_limit_s,
            Annealing(options.iterations),
            progress,
        )
        start = ordered(asked.net, settings, "two-optimal")
        return start, _ordered(asked.net, settings, options.order, start)


def _ordered(net: FFNN, settings: OrderOptions, method: str, start: Ordered) -> Ordered:
    """Return the order of ``method``; ``start``, the two-optimal order, if there is no time."""
    if method == start.method:
        return start
    if method not in CONSTRUCTED and settings.clock(net)() < 0:
        return replace(start, limit=TIME)
    return ordered(net, settings, method)


def _result(asked: NamedNetwork, found: Ordered) -> dict[str, Any]:
    return {
        "order": found.method,
        "reads": found.traffic.reads,
        "writes": found.traffic.writes,
        "total": found.total,
        "ratio": round(found.total / asked.bounds()["total"], 6),
        "limit": found.limit or None,
        "statistics": found.statistics,
    }
