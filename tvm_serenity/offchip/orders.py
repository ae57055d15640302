"""The orders that a sweep compares, by name; adding one is one line in ``ORDERS``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tvm_serenity.graph import Graph
from tvm_serenity.offchip.model import Model
from tvm_serenity.offchip.order_search import PEAK_TIME_LIMIT_S, SearchOptions, traffic_order
from tvm_serenity.schedule import Options, schedule
from tvm_serenity.transform import alias_copies, fold_concat, whole

Ordered = tuple[Graph, tuple[int, ...]]


@dataclass(frozen=True)
class Order:
    """``find`` returns a graph (rewritten, perhaps) and an order of its ops.

    ``by_capacity``: the order depends on the capacity; else it is found once for all of them.
    """

    find: Callable[[Graph, int, Model, SearchOptions], Ordered]
    by_capacity: bool
    help: str


def _given(graph: Graph, _capacity: int, _model: Model, _options: SearchOptions) -> Ordered:
    return graph, tuple(range(len(graph.ops)))


def _serenity(graph: Graph, _capacity: int, _model: Model, _options: SearchOptions) -> Ordered:
    return graph, schedule(graph, options=Options(time_limit_s=PEAK_TIME_LIMIT_S)).order


def _traffic(graph: Graph, capacity: int, model: Model, options: SearchOptions) -> Ordered:
    return graph, traffic_order(graph, capacity, model, options).order


def _folded(order: Order) -> Order:
    """The same order of the graph whose concats are read in pieces (``transform.fold_concat``)."""

    def find(graph: Graph, capacity: int, model: Model, options: SearchOptions) -> Ordered:
        reduced = fold_concat(alias_copies(whole(graph)))
        return order.find(reduced.graph, capacity, model, options)

    return Order(find, order.by_capacity, f"{order.help}, concats folded")


_SERENITY = Order(_serenity, False, "least peak memory")
_TRAFFIC = Order(_traffic, True, "least traffic at each capacity")

ORDERS: Mapping[str, Order] = {
    "given": Order(_given, False, "as the model lists them"),
    "serenity": _SERENITY,
    "traffic": _TRAFFIC,
    "serenity-fold": _folded(_SERENITY),
    "traffic-fold": _folded(_TRAFFIC),
}
"""``*-fold`` stand in for rewriting: a concat is no op, its readers read its inputs."""
