"""The orders that a sweep compares, by name; a new order is one line in ``ORDERS``."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tvm_serenity.memory import peak_bytes
from tvm_serenity.offchip.model import Model
from tvm_serenity.offchip.order_search import PEAK_TIME_LIMIT_S, SearchOptions, traffic_order
from tvm_serenity.offchip.policies import simulate
from tvm_serenity.offchip.storages import Subject
from tvm_serenity.offchip.trace import trace_of
from tvm_serenity.schedule import Options, schedule
from tvm_serenity.search.deadline import limit_left, within
from tvm_serenity.search.outcome import Outcome


class SubjectOrder(NamedTuple):
    """A subject, an order of its ops, and whether the deadline ended the search."""

    subject: Subject
    order: tuple[int, ...]
    is_late: bool = False


Find = Callable[["Versions", int, Model, SearchOptions], SubjectOrder]


@dataclass(frozen=True)
class Versions:
    """A model as given and, if available, rewritten."""

    given: Subject
    rewritten: Subject | None = None

    @cached_property
    def digest(self) -> str:
        """A digest of both graphs and their writes."""
        subjects = [self.given, *([self.rewritten] if self.rewritten is not None else [])]
        parts = [
            text
            for one in subjects
            for text in (one.graph.digest(), repr(one.writes), repr(one.passes))
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@dataclass(frozen=True)
class Order:
    """A kind of order: ``find`` returns the subject to run, and an order of its ops.

    ``by_capacity``: the order depends on the capacity. ``rewrites``: the search includes the
    rewritten model.
    """

    find: Find
    by_capacity: bool
    rewrites: bool
    help: str


def _given(
    network: Versions, _capacity: int, _model: Model, _options: SearchOptions
) -> SubjectOrder:
    return SubjectOrder(network.given, tuple(range(len(network.given.graph.ops))))


def _least_peak(subject: Subject) -> SubjectOrder:
    ordered = schedule(subject.graph, options=Options(time_limit_s=PEAK_TIME_LIMIT_S))
    return SubjectOrder(subject, ordered.order, _is_late(ordered.outcome))


def _is_late(outcome: Outcome) -> bool:
    return outcome is Outcome.TIMEOUT and limit_left() is not None


def _least(
    network: Versions, find: Callable[[Subject], SubjectOrder], cost: Callable[[SubjectOrder], int]
) -> SubjectOrder:
    """Return the better result of the given and the rewritten model, each in its time share."""
    subjects = [s for s in (network.given, network.rewritten) if s is not None]
    candidates = []
    for i, subject in enumerate(subjects):
        with within(None, 1 / (len(subjects) - i)):
            candidates.append(find(subject))
    return min(candidates, key=cost)._replace(is_late=any(f.is_late for f in candidates))


def _serenity(
    network: Versions, _capacity: int, _model: Model, _options: SearchOptions
) -> SubjectOrder:
    return _least_peak(network.given)


def _rewrite(
    network: Versions, _capacity: int, _model: Model, _options: SearchOptions
) -> SubjectOrder:
    """Return the version with the lower peak, as the pass ``SerenityRewrite`` chooses."""
    return _least(network, _least_peak, lambda f: peak_bytes(f.subject.graph, f.order))


def _least_traffic(
    subject: Subject, capacity: int, model: Model, options: SearchOptions
) -> SubjectOrder:
    ordered = traffic_order(subject, capacity, model, options)
    return SubjectOrder(subject, ordered.order, _is_late(ordered.outcome))


def _traffic(
    network: Versions, capacity: int, model: Model, options: SearchOptions
) -> SubjectOrder:
    return _least_traffic(network.given, capacity, model, options)


def _traffic_rewrite(
    network: Versions, capacity: int, model: Model, options: SearchOptions
) -> SubjectOrder:
    """Return the version with less traffic at this capacity."""
    return _least(
        network,
        lambda subject: _least_traffic(subject, capacity, model, options),
        lambda f: simulate(trace_of(f.subject, f.order, model), capacity).total_bytes,
    )


ORDERS: Mapping[str, Order] = {
    "given": Order(_given, False, False, "as the model lists them"),
    "serenity": Order(_serenity, False, False, "least peak memory"),
    "rewrite": Order(_rewrite, False, True, "least peak memory, model rewritten"),
    "traffic": Order(_traffic, True, False, "least traffic at each capacity"),
    "traffic-rewrite": Order(_traffic_rewrite, True, True, "least traffic, model rewritten"),
}
