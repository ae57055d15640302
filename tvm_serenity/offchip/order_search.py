"""Searches orders for the least off-chip traffic, with a lower bound (``docs/offchip.md``).

Small graphs: branch and bound over all orders. Larger graphs: local search from the given order and
the order of least peak. The result is never worse than those two. Work is counted in simulated
accesses, not in seconds: the same input gives the same output unless a deadline
(``tvm_serenity.search.deadline``) ends the search earlier.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph
from tvm_serenity.offchip.bound import forced_bytes
from tvm_serenity.offchip.model import Memory, Model
from tvm_serenity.offchip.network import NativeNetwork, network_of
from tvm_serenity.offchip.policies import native, simulate
from tvm_serenity.offchip.storages import Storages, Subject, storages_of
from tvm_serenity.offchip.trace import trace_of_storages
from tvm_serenity.schedule import Options, schedule, too_late_for
from tvm_serenity.search.deadline import limit_left, seconds_left, within
from tvm_serenity.search.outcome import Outcome

CHUNK_ACCESSES = 1_000_000
"""Work between two checks of the remaining time."""
COARSE_ACCESSES = 6_000
"""Local search uses larger blocks if a simulation has more accesses than this."""
COARSE_SLOTS = 32
MAX_STATE_BYTES = 200_000_000
"""Limit on the memory of local search for the cache states before every step."""
PEAK_TIME_LIMIT_S = 20.0
PEAK_SHARE = 0.25
"""Share of the remaining time for the order of least peak, before the search."""
BOUND_SHARE = 0.25
NETWORK_S = 6e-6
"""Seconds per op of a large graph to build the native form."""
COARSE_SHARE = 0.75
"""Share of accesses and time for local search in coarse blocks, if there are two levels."""


@dataclass(frozen=True)
class SearchOptions:
    """Limits of the search, in simulated accesses, and the seed.

    ``exact_ops``: branch and bound is tried on at most this many ops. ``keep_on_interrupt``: on
    Ctrl-C return the best order so far, with "interrupt" in ``statistics["limit"]``.
    """

    local_accesses: int = 60_000_000
    exact_accesses: int = 60_000_000
    exact_ops: int = 24
    seed: int = 0
    keep_on_interrupt: bool = False

    def __post_init__(self) -> None:
        for name in ("local_accesses", "exact_accesses", "exact_ops", "seed"):
            if getattr(self, name) < 0:
                raise InputError(
                    f"search option {name} must be 0 or more, got {getattr(self, name)}"
                )


@dataclass(frozen=True, kw_only=True)
class TrafficOrder:
    """An order, its Belady traffic at ``capacity_bytes``, and its proof status.

    ``lower_bound_bytes`` holds for every order and policy if ``outcome`` is *feasible*. *optimal*:
    no order has less Belady traffic. *timeout*: Ctrl-C or the deadline ended the search
    (``statistics["limit"]``). ``starts`` holds the traffic of the starting orders by name, as far
    as they were measured.
    """

    order: tuple[int, ...]
    capacity_bytes: int
    total_bytes: int
    compulsory_bytes: int
    lower_bound_bytes: int
    outcome: Outcome
    starts: Mapping[str, int]
    seconds: float
    statistics: Mapping[str, object] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """The traffic above the lower bound, as a share of the bound."""
        if self.total_bytes <= self.lower_bound_bytes:
            return 0.0
        return self.total_bytes / max(1, self.lower_bound_bytes) - 1.0


def traffic_order(
    subject: Subject | Graph,
    capacity_bytes: int,
    model: Model | None = None,
    options: SearchOptions | None = None,
    starts: Mapping[str, Sequence[int]] | None = None,
) -> TrafficOrder:
    """Return an order of the operators with the least traffic that the search finds.

    The traffic is that of a memory of ``capacity_bytes`` with Belady's replacement. ``subject``: a
    graph, or a graph with the partial writes of its ops. ``starts``: the orders to improve on
    (default: the given order and the order of least peak). For a scratchpad the search runs on a
    cache of the same size; its order is returned only if it also lowers the scratchpad's traffic.
    Raises :class:`InputError` if the capacity is too small for the graph, as ``simulate`` does.
    """
    began = time.perf_counter()
    if isinstance(subject, Graph):
        subject = Subject(subject)
    graph = subject.graph
    model, options = model or Model(), options or SearchOptions()
    work = _Work(subject, capacity_bytes, model, options)
    totals: dict[str, int] = {}
    try:
        _improve(work, _least_peak(graph) if starts is None else starts, totals)
    except TimeoutError:
        work.counts["limit"] = "time"
    except KeyboardInterrupt:
        if not options.keep_on_interrupt:
            raise
        work.counts["limit"] = "interrupt"
    proved = work.best_bytes <= work.bound_bytes
    unproved = Outcome.TIMEOUT if "limit" in work.counts else Outcome.FEASIBLE
    return TrafficOrder(
        order=work.best,
        capacity_bytes=capacity_bytes,
        total_bytes=work.best_bytes,
        compulsory_bytes=work.compulsory_bytes,
        lower_bound_bytes=work.bound_bytes,
        outcome=Outcome.OPTIMAL if proved else unproved,
        starts=totals,
        seconds=time.perf_counter() - began,
        statistics={"core": "native" if native is not None else "python", **work.counts},
    )


def _least_peak(graph: Graph) -> Mapping[str, Sequence[int]]:
    """Return the starting orders; the given one alone if time is short."""
    with within(None, PEAK_SHARE):
        if too_late_for(len(graph.ops)):
            return {"given": range(len(graph.ops))}
        peak = schedule(graph, options=Options(time_limit_s=PEAK_TIME_LIMIT_S))
    return {"given": range(len(graph.ops)), "serenity": peak.order}


def _improve(work: "_Work", starts: Mapping[str, Sequence[int]], totals: dict[str, int]) -> None:
    """Measure the starts and search from them; raise :class:`TimeoutError` at the deadline."""
    for name, order in starts.items():
        if limit_left() == 0.0:
            raise TimeoutError
        totals[name] = work.offer(order, seconds_left())
    if native is None or work.best_bytes <= work.bound_bytes:
        return
    if too_late_for(len(work.storages.graph.ops), NETWORK_S):
        raise TimeoutError
    work.raise_bound()
    if work.best_bytes > work.bound_bytes and _search(work, list(starts.values())):
        work.bound_bytes = work.best_bytes
    elif limit_left() == 0.0:
        raise TimeoutError


class _Work:
    """The best order so far and the bound; totals are those of the requested model."""

    def __init__(
        self, subject: Subject, capacity_bytes: int, model: Model, options: SearchOptions
    ) -> None:
        self.subject, self.capacity_bytes, self.model = subject, capacity_bytes, model
        self.options = options
        self.storages = storages_of(subject, model)
        given = trace_of_storages(self.storages)
        self.compulsory_bytes = given.compulsory_bytes
        self.best: tuple[int, ...] = tuple(range(len(subject.graph.ops)))
        self.best_bytes = simulate(given, capacity_bytes).total_bytes
        self.counts: dict[str, object] = {}
        self.bound_bytes = self.compulsory_bytes

    def raise_bound(self) -> None:
        """Raise the bound by the traffic that the limited capacity forces on every order."""
        self.bound_bytes += forced_bytes(
            self.storages, self.capacity_bytes, BOUND_SHARE * seconds_left()
        )

    def offer(self, order: Sequence[int], seconds: float = inf) -> int:
        """Return the traffic of ``order``, and keep the order if it is the best.

        Raises :class:`TimeoutError` after ``seconds``.
        """
        trace = trace_of_storages(self.storages, order)
        total = simulate(trace, self.capacity_bytes, seconds=seconds).total_bytes
        if total < self.best_bytes:
            self.best, self.best_bytes = tuple(order), total
        return total


def _search(work: _Work, starts: list[Sequence[int]]) -> bool:
    """Improve the best order; return whether it is proved optimal."""
    model, options = work.model, work.options
    block_bytes = model.block_bytes or 256
    cached = replace(model, memory=Memory.CACHE, block_bytes=block_bytes, alignment_bytes=1)
    fine = work.storages if cached == model else storages_of(work.subject, cached)
    for storages, share in _levels(fine, work):
        network = network_of(storages)
        slots = work.capacity_bytes // (storages.model.block_bytes or 1)
        orders = [work.best] if storages is fine else starts
        for seed, order in enumerate(orders):
            budget = int(options.local_accesses * share / len(orders))
            with within(None, share / (len(orders) - seed)):
                _climb(work, network, slots, order, options.seed * 8 + seed, budget)
            if work.best_bytes <= work.bound_bytes:
                return True
    if cached != model or fine.count_ops > options.exact_ops or slots == 0:
        return False
    return _branch(work, network_of(fine), slots, cached.block_bytes or 1)


def _levels(fine: Storages, work: _Work) -> Iterator[tuple[Storages, float]]:
    """Yield coarse blocks for most of the work, if there are many, then the real blocks.

    Each level comes with its share of the budget. Levels that need too much memory are left out.
    """
    block = fine.model.block_bytes or 1
    accesses = len(fine.accesses.block)
    states = len(fine.graph.ops) * fine.count_blocks
    slots = work.capacity_bytes // block
    factor = 1
    while (accesses > COARSE_ACCESSES * factor and slots >= COARSE_SLOTS * 2 * factor) or (
        states > MAX_STATE_BYTES * factor and slots >= 2 * factor
    ):
        factor *= 2
    if factor > 1:
        coarse = storages_of(work.subject, replace(fine.model, block_bytes=block * factor))
        # small tensors stay unsplit
        if len(fine.graph.ops) * coarse.count_blocks <= MAX_STATE_BYTES:
            yield coarse, COARSE_SHARE
    if states <= MAX_STATE_BYTES:
        yield fine, 1 - COARSE_SHARE if factor > 1 else 1.0


def _climb(
    work: _Work, network: NativeNetwork, slots: int, start: Sequence[int], seed: int, budget: int
) -> None:
    if slots == 0 or not network.accesses or not budget:
        return
    assert native is not None
    search = native.LocalSearch(network.core, slots, network.inside(start), seed, budget)
    began_with = limit_left()
    try:
        while (left := seconds_left()) > 0:
            warmth = left / began_with if began_with else 1.0
            if search.run(CHUNK_ACCESSES, left, warmth):
                break
    finally:
        work.offer(network.outside(search.best))
    for name in ("candidates", "simulated"):
        done = work.counts.get(f"local_{name}", 0)
        assert isinstance(done, int)
        work.counts[f"local_{name}"] = done + getattr(search, name)


def _branch(work: _Work, network: NativeNetwork, slots: int, block: int) -> bool:
    assert native is not None
    extra = trace_of_storages(work.storages).streamed_bytes
    search = native.BranchAndBound(
        network.core,
        slots,
        block,
        network.inside(work.best),
        work.best_bytes - extra,
        work.bound_bytes - extra,
    )
    try:
        proved: bool = search.run(work.options.exact_accesses, seconds_left())
    finally:
        work.counts["exact_nodes"] = search.nodes
        work.offer(network.outside(search.best))
    return proved
