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
    """Return the best order annealing meets from ``start`` (two-optimal).

    In iteration t a window of at most ws connections moves left, each to right behind the last
    one that touches its source, or right, each to right before the next one that touches its
    target. The new order is kept if it needs fewer I/Os, else with probability
    ``2 ** -((new - old) * t ** sigma)``.

    Blocks are ours: a few connections in a row move left or right as one, up to the last (next)
    other connection that touches the source or the target of one of them, or up to what they depend
    on (what depends on them).
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
