"""Connection Reordering: the paper's simulated annealing (section IV)."""

import time
from dataclasses import replace

from tvm_serenity.sparse.native import core
from tvm_serenity.sparse.network import FFNN, Ints
from tvm_serenity.sparse.orders.result import (
    ANNEAL_S,
    ENDING_S,
    TIME,
    Ordered,
    OrderOptions,
    Progress,
    measured,
)
from tvm_serenity.sparse.orders.simple import two_optimal
from tvm_serenity.sparse.simulate import NUMBERS, graph_of, simulate


def anneal(net: FFNN, settings: OrderOptions, start: Ints | None = None) -> Ordered:
    """Return the best order that annealing visits, from ``start`` on (default: two-optimal).

    In iteration t, each connection of a window of at most ws connections moves: to the left, to
    right after the last connection that touches its source; or to the right, to right before the
    next connection that touches its target. The new order is accepted if it needs fewer I/Os, else
    with probability ``2 ** -((new - old) * t ** sigma)``.

    Moves of blocks are an extension of the paper: a few consecutive connections move together, up
    to the last (next) other connection that touches a source or target of one of them, or up to a
    connection on which they depend (which depends on them).
    """
    options, left = settings.annealing, settings.clock(net, ENDING_S)
    first = two_optimal(net) if start is None else start
    if left() < ANNEAL_S * net.connections:
        none = dict.fromkeys(("iterations", "changed", "accepted", "simulated"), 0)
        return replace(measured(net, first, settings, "anneal", **none), limit=TIME)
    begin = time.perf_counter()
    progress = settings.progress

    def tell(iterations: int, best: int) -> None:
        assert progress is not None
        progress(Progress("anneal", iterations, best, time.perf_counter() - begin))

    order, _, iterations, changed, accepted, simulated, limit = core().anneal(
        graph_of(net),
        first,
        NUMBERS[settings.policy],
        settings.memory,
        settings.delay(net, first),
        iterations=options.iterations,
        window=options.window_of(net),
        cooling=options.cooling,
        seed=settings.seed,
        blocks=options.blocks,
        block=options.block,
        first_iteration=options.first_iteration,
        seconds=left(),
        incremental=options.incremental_of(net, settings.policy),
        report=tell if progress is not None else None,
    )
    return Ordered(
        order,
        simulate(net, order, settings.memory, settings.policy),
        "anneal",
        limit=limit,
        statistics={
            "iterations": iterations,
            "changed": changed,
            "accepted": accepted,
            "simulated": simulated,
        },
    )
