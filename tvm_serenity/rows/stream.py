"""Order and placement of bands: from a network and band heights to an arena, with its bound."""

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
from tvm_serenity.rows.over import named_over, pairs_over
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

    ``schedule.lower_bound_bytes`` holds for the arena of every order at these band heights.
    ``outcome`` is about the arena: *optimal* iff it equals that bound. ``start_bytes`` is the peak
    of the segment program's order, which the searches began with.
    """

    banded: Banded
    schedule: Schedule
    ranges: tuple[LiveRange, ...]
    plan: Plan
    outcome: Outcome
    start_bytes: int
    seconds: float
    input_base: int = 0
    """Where the inputs begin that lie in memory from the start."""

    @staticmethod
    def of(
        banded: Banded, joint: Joint, start_bytes: int, seconds: float, input_base: int
    ) -> "Streaming":
        """Return a network split, ordered and placed as ``joint`` is."""
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
        """Bytes of the arena."""
        return self.plan.arena_bytes

    @property
    def lower_bound_bytes(self) -> int:
        """A bound on the arena of every order and placement at these band heights."""
        return self.schedule.lower_bound_bytes

    @property
    def gap(self) -> float:
        """How far the arena may be from the least one, as a share of the bound."""
        return self.arena_bytes / max(1, self.lower_bound_bytes) - 1.0

    @cached_property
    def offsets(self) -> dict[int, int]:
        """The offset in the arena of every tensor of ``banded.graph`` that is live at some step."""
        pairs = zip(self.ranges, self.plan.offsets, strict=True)
        return {t: offset for found, offset in pairs for t in found.tensors}

    def check(self) -> None:
        """Raise :class:`CheckError` unless order and placement pass the naive checkers."""
        check_schedule(self.banded.graph, self.schedule.order, self.schedule.peak_bytes)
        check_plan(self.plan.buffers, self.plan.offsets, self.arena_bytes)


def stream(
    network: Network,
    heights: Sequence[int],
    *,
    streamed: bool = False,
    limits: Limits | None = None,
) -> Streaming:
    """Return the bands of ``network`` ordered and placed for the least arena found.

    The segment program's order is improved by the exact search and its neighbourhoods; where the
    placement leaves gaps, nearby orders are placed as well. What is found when all steps are taken,
    or the time is over, is the result; there is always one.
    """
    limits = limits or Limits()
    over, part = any(layer.over for layer in network.layers), PARTS * limits.time_limit_s
    with within(2 * part if over else part):
        with within(part):
            apart = _apart(network, heights, streamed, limits)
        return _overlapping(network, apart, limits) if over else apart


def _apart(network: Network, heights: Sequence[int], streamed: bool, limits: Limits) -> Streaming:
    """The bands, none of which lies over another."""
    started = time.perf_counter()
    layers = tuple(replace(layer, over=()) for layer in network.layers)
    banded = split(replace(network, layers=layers), heights, streamed=streamed)
    first = segment_order(banded)
    found = order_from(banded, first, limits)

    best, at = _best_joint(banded, found, first, 0, limits), 0
    if best.outcome is not Outcome.OPTIMAL and held_bytes(banded) and seconds_left():
        base = promising_base(banded, found.order, found.peak_bytes, limits)
        joint = _best_joint(banded, found, first, base, limits)
        if joint.plan.arena_bytes < best.plan.arena_bytes:
            best, at = joint, base
    problem = problem_of(banded.graph)
    peak = peak_of(problem, _positions(problem.ops, first))
    return Streaming.of(banded, best, peak, time.perf_counter() - started, at)


def _overlapping(network: Network, apart: Streaming, limits: Limits) -> Streaming:
    """The bands with rows that lie over others, or as they lie apart where that is no larger.

    The search for an order begins with the best one of bands that lie apart.
    """
    started = time.perf_counter()
    heights, streamed = apart.banded.heights, apart.banded.feeding is not None
    banded = split(network, heights, streamed=streamed)
    if not any(op.over for op in banded.graph.ops):
        return apart
    order, problem = apart.schedule.order, problem_of(banded.graph)
    found = order_from(banded, order, limits)
    begun = replace(found, order=order, peak_bytes=peak_of(problem, _positions(problem.ops, order)))
    ranges = live_ranges(banded.graph, order)
    named = named_over(apart.plan.buffers, pairs_over(banded, order, ranges))
    best = Joint.of(begun, ranges, replace(apart.plan, buffers=tuple(named)), 1)
    at, tried = apart.input_base, set[int]()
    for base in _bases_over(banded, apart, begun, limits):
        if best.outcome is Outcome.OPTIMAL or (tried and seconds_left() == 0):
            break
        if base in tried:
            continue
        tried.add(base)
        joint = _best_joint(banded, found, order, base, limits)
        if joint.plan.arena_bytes < best.plan.arena_bytes:
            best, at = joint, base
    seconds = apart.seconds + time.perf_counter() - started
    return Streaming.of(banded, best, apart.start_bytes, seconds, at)


def _bases_over(banded: Banded, apart: Streaming, begun: Schedule, limits: Limits) -> Iterator[int]:
    """Where inputs may begin that rows lie over: as without, just above a row, the best of some."""
    yield apart.input_base
    yield from bases_below(banded)
    if held_bytes(banded) and seconds_left():
        yield promising_base(banded, begun.order, begun.peak_bytes, limits)


def arriving(memory: Streaming, limits: Limits | None = None) -> Streaming:
    """Return a plan for an input in memory as one for an input that arrives.

    All rows are taken in first, each to its place; then everything is as in ``memory``. So no
    input that arrives needs a larger arena than one in memory does.
    """
    limits = limits or Limits()
    banded = split(memory.banded.network, memory.banded.heights, streamed=True, kept=True)
    feeds = sum(call.feeds for call in banded.calls)
    order = (*range(feeds), *(op + feeds for op in memory.schedule.order))
    found = order_from(banded, order, limits)
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
    buffers = tuple(named_over(plain, pairs_over(banded, order, ranges)))
    others = [t for t in banded.graph.inputs if banded.bands[t].feature in banded.resident]
    placed = replace(memory.plan, buffers=buffers, offsets=offsets)
    joint = Joint.of(replace(found, order=order, peak_bytes=peak), ranges, placed, 1)
    base = min((places[t] for t in others), default=0)
    return Streaming.of(banded, joint, peak, memory.seconds + found.seconds, base)


def _best_joint(
    banded: Banded,
    found: Schedule,
    first: tuple[int, ...],
    base: int,
    limits: Limits,
) -> Joint:
    """The better placed of the order found and the one it began with, improved while time is."""

    def place(order: Sequence[int], options: PlanOptions) -> tuple[tuple[LiveRange, ...], Plan]:
        return place_bands(banded, order, options, base)

    problem = problem_of(banded.graph)
    begun = replace(found, order=first, peak_bytes=peak_of(problem, _positions(problem.ops, first)))
    starts = [found] if begun.order == found.order else [found, begun]
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
    """Return the least peak found beginning with ``first``; Ctrl-C keeps the best so far."""
    graph = banded.graph
    problem = problem_of(graph)
    try:
        found = exact(problem, limits.order, start=[_positions(problem.ops, first)])
    except Interrupted as interrupt:
        found = interrupt.solution
    order = complete_order(graph, [problem.ops[i] for i in found.order])
    return Schedule(
        method="rows",
        order=order,
        peak_bytes=found.peak_bytes,
        lower_bound_bytes=found.lower_bound_bytes,
        outcome=found.outcome,
        states=found.states,
        seconds=found.seconds,
        statistics=found.statistics,
    )


def _positions(ops: Sequence[int], order: Sequence[int]) -> list[int]:
    position = {op: i for i, op in enumerate(ops)}
    return [position[op] for op in order if op in position]
