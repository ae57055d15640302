"""The orders that a sweep compares, by name; adding one is one line in ``ORDERS``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tvm_serenity.memory import peak_bytes
from tvm_serenity.offchip.model import Model
from tvm_serenity.offchip.order_search import PEAK_TIME_LIMIT_S, SearchOptions, traffic_order
from tvm_serenity.offchip.policies import simulate
from tvm_serenity.offchip.storages import Subject
from tvm_serenity.offchip.trace import trace_of
from tvm_serenity.schedule import Options, schedule

Ordered = tuple[Subject, tuple[int, ...]]
Find = Callable[["Versions", int, Model, SearchOptions], Ordered]


@dataclass(frozen=True)
class Versions:
    """A model as it is given and, where there is one, rewritten."""

    given: Subject
    rewritten: Subject | None = None


@dataclass(frozen=True)
class Order:
    """``find`` returns what is run, and an order of its ops.

    ``by_capacity``: the order depends on the capacity; else it is found once for all of them.
    ``rewrites``: it looks at the rewritten model too.
    """

    find: Find
    by_capacity: bool
    rewrites: bool
    help: str


def _given(network: Versions, _capacity: int, _model: Model, _options: SearchOptions) -> Ordered:
    return network.given, tuple(range(len(network.given.graph.ops)))


def _least_peak(subject: Subject) -> Ordered:
    return subject, schedule(subject.graph, options=Options(time_limit_s=PEAK_TIME_LIMIT_S)).order


def _serenity(network: Versions, _capacity: int, _model: Model, _options: SearchOptions) -> Ordered:
    return _least_peak(network.given)


def _rewrite(network: Versions, _capacity: int, _model: Model, _options: SearchOptions) -> Ordered:
    """Whichever has the lower peak, as the pass ``SerenityRewrite`` chooses."""
    found = [_least_peak(s) for s in (network.given, network.rewritten) if s is not None]
    return min(found, key=lambda f: peak_bytes(f[0].graph, f[1]))


def _least_traffic(
    subject: Subject, capacity: int, model: Model, options: SearchOptions
) -> Ordered:
    return subject, traffic_order(subject, capacity, model, options).order


def _traffic(network: Versions, capacity: int, model: Model, options: SearchOptions) -> Ordered:
    return _least_traffic(network.given, capacity, model, options)


def _traffic_rewrite(
    network: Versions, capacity: int, model: Model, options: SearchOptions
) -> Ordered:
    """Whichever has less traffic at this capacity."""
    subjects = [s for s in (network.given, network.rewritten) if s is not None]
    found = [_least_traffic(s, capacity, model, options) for s in subjects]
    return min(found, key=lambda f: simulate(trace_of(f[0], f[1], model), capacity).total_bytes)


ORDERS: Mapping[str, Order] = {
    "given": Order(_given, False, False, "as the model lists them"),
    "serenity": Order(_serenity, False, False, "least peak memory"),
    "rewrite": Order(_rewrite, False, True, "least peak memory, model rewritten"),
    "traffic": Order(_traffic, True, False, "least traffic at each capacity"),
    "traffic-rewrite": Order(_traffic_rewrite, True, True, "least traffic, model rewritten"),
}
