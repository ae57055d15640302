"""Orders and places the bands of a network: computes an arena and its lower bound."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tvm_serenity.graph import complete_order
from tvm_serenity.memory import LiveRange, live_ranges
from tvm_serenity.plan import Buffer, Plan, PlanOptions, check_plan
from tvm_serenity.plan.joint import Joint, improve_arena
from tvm_serenity.rows.bases import bases_below, promising_base
from tvm_serenity.rows.limits import PARTS, Limits
from tvm_serenity.rows.network import Network
from tvm_serenity.rows.overlap import overlap_pairs, with_overlaps
from tvm_serenity.rows.place import held_bytes, input_offsets, place_bands
from tvm_serenity.rows.segments import segment_order
from tvm_serenity.rows.split import Banded, split
from tvm_serenity.schedule import Schedule, check_schedule
from tvm_serenity.schedule.exact import Interrupted, exact
from tvm_serenity.schedule.problem import peak_of, problem_of
from tvm_serenity.search.deadline import seconds_left, within
from tvm_serenity.search.outcome import Outcome


@dataclass(frozen=True, kw_only=True)
class Streaming:
    """A split network with the order of its ops and an offset for every band.

    ``schedule.lower_bound_bytes`` is a lower bound on every arena at these band heights.
    ``outcome``: *optimal* if the arena equals that bound. ``start_bytes``: the peak of the segment
    program's order, with which the searches begin.
    """

    banded: Banded
    schedule: Schedule
    ranges: tuple[LiveRange, ...]
    plan: Plan
    outcome: Outcome
    start_bytes: int
    seconds: float
    input_base: int = 0
    """The arena offset at which the resident inputs begin."""

    @staticmethod
    def of(
        banded: Banded, joint: Joint, start_bytes: int, seconds: float, input_base: int
    ) -> "Streaming":
        """Return a split network with the order and placement of ``joint``."""
        return Streaming(
            banded=banded,
            schedule=joint.schedule,
            ranges=joint.ranges,
            plan=joint.plan,
            outcome=joint.outcome,
            start_bytes=start_bytes,
            seconds=seconds,
            input_base=input_base,
        )

    @property
    def arena_bytes(self) -> int:
        """The size of the arena in bytes."""
        return self.plan.arena_bytes

    @property
    def lower_bound_bytes(self) -> int:
        """A lower bound on the arena over all orders and placements at these band heights."""
        return self.schedule.lower_bound_bytes

    @property
    def gap(self) -> float:
        """The excess of the arena over the lower bound, as a fraction of the bound."""
        return self.arena_bytes / max(1, self.lower_bound_bytes) - 1.0

    @cached_property
    def offsets(self) -> dict[int, int]:
        """The arena offset of every tensor of ``banded.graph`` that is live at some step."""
        pairs = zip(self.ranges, self.plan.offsets, strict=True)
        return {t: offset for live, offset in pairs for t in live.tensors}

    def check(self) -> None:
        """Check order and placement with the naive checkers; raise :class:`CheckError`."""
        check_schedule(self.banded.graph, self.schedule.order, self.schedule.peak_bytes)
        check_plan(self.plan.buffers, self.plan.offsets, self.arena_bytes)


def stream(
    network: Network,
    heights: Sequence[int],
    *,
    streamed: bool = False,
    limits: Limits | None = None,
    known: Sequence[Streaming] = (),
) -> Streaming:
    """Split ``network`` into bands of ``heights``, and return the order with the smallest arena.

    The order search improves the segment program's order. If the arena is larger than its bound,
    similar orders are placed as well. When the steps or the time are used up, the best result so
    far is returned; there is always one. ``known``: results of earlier calls with the same limits;
    one for the same network without overlapping rows is not searched again.
    """
    limits = limits or Limits()
    overlaps, part = any(layer.over for layer in network.layers), PARTS * limits.time_limit_s
    apart = replace(network, layers=tuple(replace(layer, over=()) for layer in network.layers))
    with within(2 * part if overlaps else part):
        with within(part):
            separate = _of(known, apart, heights, streamed)
            separate = separate or _without_overlap(apart, heights, streamed, limits)
        return _overlapping(network, separate, limits) if overlaps else separate


def _of(
    known: Sequence[Streaming], network: Network, heights: Sequence[int], streamed: bool
) -> Streaming | None:
    """Return the known result for ``network`` in bands of ``heights``, None without."""
    for one in known:
        same = one.banded.network == network and one.banded.heights == tuple(heights)
        if same and (one.banded.feeding is not None) == streamed:
            return one
    return None


def _without_overlap(
    network: Network, heights: Sequence[int], streamed: bool, limits: Limits
) -> Streaming:
    """Return a network without overlapping rows ordered and placed."""
    started = time.perf_counter()
    banded = split(network, heights, streamed=streamed)
    first = segment_order(banded)
    searched = order_from(banded, first, limits)

    best, at = _best_joint(banded, searched, first, 0, limits), 0
    if best.outcome is not Outcome.OPTIMAL and held_bytes(banded) and seconds_left():
        base = promising_base(banded, searched.order, searched.peak_bytes, limits)
        joint = _best_joint(banded, searched, first, base, limits)
        if joint.plan.arena_bytes < best.plan.arena_bytes:
            best, at = joint, base
    problem = problem_of(banded.graph)
    peak = peak_of(problem, _positions(problem.ops, first))
    return Streaming.of(banded, best, peak, time.perf_counter() - started, at)


def _overlapping(network: Network, separate: Streaming, limits: Limits) -> Streaming:
    """Return the network placed with overlapping rows, or ``separate`` if no row may overlap.

    The order search begins with the order of ``separate``, the best result without overlaps. The
    arena is never larger than that of ``separate``.
    """
    started = time.perf_counter()
    heights, streamed = separate.banded.heights, separate.banded.feeding is not None
    banded = split(network, heights, streamed=streamed)
    if not any(op.over for op in banded.graph.ops):
        return separate
    order, problem = separate.schedule.order, problem_of(banded.graph)
    searched = order_from(banded, order, limits)
    begun = replace(
        searched, order=order, peak_bytes=peak_of(problem, _positions(problem.ops, order))
    )
    ranges = live_ranges(banded.graph, order)
    named = with_overlaps(separate.plan.buffers, overlap_pairs(banded, order, ranges))
    best = Joint.of(begun, ranges, replace(separate.plan, buffers=tuple(named)), 1)
    at = separate.input_base
    if best.outcome is not Outcome.OPTIMAL:
        base = _best_base(banded, separate, (order, searched.order), limits)
        joint = _best_joint(banded, searched, order, base, limits)
        if joint.plan.arena_bytes < best.plan.arena_bytes:
            best, at = joint, base
    seconds = separate.seconds + time.perf_counter() - started
    return Streaming.of(banded, best, separate.start_bytes, seconds, at)


def _best_base(
    banded: Banded, separate: Streaming, orders: Sequence[Sequence[int]], limits: Limits
) -> int:
    """Return the input offset with the smallest arena of several, each placed with few steps.

    They are that of ``separate``, those of ``bases_below``, and the result of a search.
    """
    best, least = separate.input_base, None
    for base in _overlap_bases(banded, separate, limits):
        if least is not None and seconds_left() == 0:
            break
        for order in dict.fromkeys(map(tuple, orders)):
            arena_bytes = place_bands(banded, order, limits.nearby, base)[1].arena_bytes
            if least is None or arena_bytes < least:
                best, least = base, arena_bytes
    return best


def _overlap_bases(banded: Banded, separate: Streaming, limits: Limits) -> Iterator[int]:
    """Yield different input offsets to try."""
    yield separate.input_base
    yield from (base for base in bases_below(banded) if base != separate.input_base)
    if held_bytes(banded) and seconds_left():
        order, problem = separate.schedule.order, problem_of(banded.graph)
        peak = peak_of(problem, _positions(problem.ops, order))
        yield promising_base(banded, order, peak, limits)


def arriving(memory: Streaming, limits: Limits | None = None) -> Streaming:
    """Return the plan ``memory``, of a resident input, as a plan for an input that arrives.

    All input rows are stored first, each at its offset; then the ops run as in ``memory``. So an
    arriving input never needs a larger arena than a resident input.
    """
    limits = limits or Limits()
    banded = split(memory.banded.network, memory.banded.heights, streamed=True, kept=True)
    feeds = sum(call.feeds for call in banded.calls)
    order = (*range(feeds), *(op + feeds for op in memory.schedule.order))
    searched = order_from(banded, order, limits)
    problem = problem_of(banded.graph)
    peak = peak_of(problem, _positions(problem.ops, order))
    fixed = input_offsets(memory.banded, memory.input_base)
    places = {t + 1: place for t, place in {**memory.offsets, **fixed}.items()}
    scratch = {
        r.workspace_of + feeds: place
        for r, place in zip(memory.ranges, memory.plan.offsets, strict=True)
        if r.workspace_of is not None
    }
    ranges = live_ranges(banded.graph, order)
    offsets = tuple(
        scratch[r.workspace_of] if r.workspace_of is not None else places.get(r.tensors[0], 0)
        for r in ranges
    )
    plain = [Buffer(f"{i} {r.name}", r.start, r.stop, r.size_bytes) for i, r in enumerate(ranges)]
    buffers = tuple(with_overlaps(plain, overlap_pairs(banded, order, ranges)))
    others = [t for t in banded.graph.inputs if banded.bands[t].feature in banded.held]
    placed = replace(memory.plan, buffers=buffers, offsets=offsets)
    joint = Joint.of(replace(searched, order=order, peak_bytes=peak), ranges, placed, 1)
    base = min((places[t] for t in others), default=0)
    return Streaming.of(banded, joint, peak, memory.seconds + searched.seconds, base)


def _best_joint(
    banded: Banded,
    searched: Schedule,
    first: tuple[int, ...],
    base: int,
    limits: Limits,
) -> Joint:
    """Place the orders ``searched`` and ``first``; improve and return the smaller arena."""

    def place(order: Sequence[int], options: PlanOptions) -> tuple[tuple[LiveRange, ...], Plan]:
        return place_bands(banded, order, options, base)

    problem = problem_of(banded.graph)
    begun = replace(
        searched, order=first, peak_bytes=peak_of(problem, _positions(problem.ops, first))
    )
    starts = [searched] if begun.order == searched.order else [searched, begun]
    best = None
    with within(limits.time_limit_s):
        for start in starts:
            joint = Joint.of(start, *place(start.order, limits.place), 1)
            if best is None or joint.plan.arena_bytes < best.plan.arena_bytes:
                best = joint
            if best.outcome is Outcome.OPTIMAL:
                return best
        assert best is not None
        return improve_arena(
            banded.graph,
            best,
            lambda order: place(order, limits.nearby),
            places=limits.orders,
            seed=limits.seed,
        )


def order_from(banded: Banded, first: Sequence[int], limits: Limits) -> Schedule:
    """Search for an order with the least peak, starting with ``first``, and return it.

    Ctrl-C ends the search with the best order so far.
    """
    graph = banded.graph
    problem = problem_of(graph)
    try:
        solution = exact(problem, limits.order, start=[_positions(problem.ops, first)])
    except Interrupted as interrupt:
        solution = interrupt.solution
    order = complete_order(graph, [problem.ops[i] for i in solution.order])
    return Schedule(
        method="rows",
        order=order,
        peak_bytes=solution.peak_bytes,
        lower_bound_bytes=solution.lower_bound_bytes,
        outcome=solution.outcome,
        states=solution.states,
        seconds=solution.seconds,
        statistics=solution.statistics,
    )


def _positions(ops: Sequence[int], order: Sequence[int]) -> list[int]:
    position = {op: i for i, op in enumerate(ops)}
    return [position[op] for op in order if op in position]
