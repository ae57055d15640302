"""Orders of the connections: ``order`` runs one of these methods.

===============  ================================================================================
method           result
===============  ================================================================================
``layerwise``    layer by layer, source by source, as a chain of sparse products computes
``two-optimal``  Theorem 1's order, neuron by neuron: at most twice the I/Os of any order
``anneal``       the paper's Connection Reordering (section IV), starting with ``two-optimal``
``tiles``        output-stationary tiles, the best of several sizes
``greedy``       greedy residency with the best of a few weights; ``two-optimal`` if time is short
``auto``         the best of all methods, annealed for the rest of the time
===============  ================================================================================

    ordered = order(net, OrderOptions(memory=100), "auto")
    ordered.order, ordered.traffic.total, ordered.method, ordered.limit
"""

import time
from collections.abc import Callable
from dataclasses import replace

from tvm_serenity.errors import InputError
from tvm_serenity.search.deadline import within
from tvm_serenity.sparse.check import check_order
from tvm_serenity.sparse.network import FFNN
from tvm_serenity.sparse.orders.anneal import anneal
from tvm_serenity.sparse.orders.auto import auto
from tvm_serenity.sparse.orders.greedy import greedy
from tvm_serenity.sparse.orders.result import Annealing, Ordered, OrderOptions, Progress, measured
from tvm_serenity.sparse.orders.simple import layerwise, two_optimal
from tvm_serenity.sparse.orders.tiles import tiles

__all__ = [
    "CONSTRUCTED",
    "ORDERS",
    "Annealing",
    "OrderOptions",
    "Ordered",
    "Progress",
    "anneal",
    "auto",
    "greedy",
    "layerwise",
    "order",
    "tiles",
    "two_optimal",
]

ORDERS: dict[str, Callable[[FFNN, OrderOptions], Ordered]] = {
    "layerwise": lambda net, settings: measured(net, layerwise(net), settings, "layerwise"),
    "two-optimal": lambda net, settings: measured(net, two_optimal(net), settings, "two-optimal"),
    "anneal": anneal,
    "tiles": tiles,
    "greedy": greedy,
    "auto": auto,
}


CONSTRUCTED = ("layerwise", "two-optimal")
"""Methods without a search."""


def order(net: FFNN, settings: OrderOptions, method: str = "auto") -> Ordered:
    """Return the order that ``method`` computes, checked, with its I/Os and seconds.

    Ctrl-C ends a search with the best order so far and sets ``limit``; methods without a search
    raise ``KeyboardInterrupt``. Raises :class:`InputError` if the method is unknown.
    """
    if method not in ORDERS:
        raise InputError(f"unknown order method {method!r}; choose one of {', '.join(ORDERS)}")
    begin = time.perf_counter()
    with within(settings.time_limit_s):
        ordered = ORDERS[method](net, settings)
    check_order(net, ordered.order)
    return replace(ordered, seconds=time.perf_counter() - begin)
