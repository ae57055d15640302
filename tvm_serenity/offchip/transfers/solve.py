"""A policy's decisions as a transfer plan: residencies, addresses, homes, steps."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf

from tvm_serenity.errors import CheckError, InputError
from tvm_serenity.graph import Graph, Role
from tvm_serenity.offchip.accesses import READ, WRITE
from tvm_serenity.offchip.bound import forced_bytes
from tvm_serenity.offchip.direct import direct_use
from tvm_serenity.offchip.model import InputPlace, Memory, Model, Weights
from tvm_serenity.offchip.policies import (
    DIRECT,
    POLICIES,
    check_capacity,
    check_policy,
    need_under,
    simulate,
)
from tvm_serenity.offchip.reference import Action, Decision, decisions
from tvm_serenity.offchip.storages import Storages, Subject, storages_of
from tvm_serenity.offchip.trace import Trace, storage_heads, trace_of_storages
from tvm_serenity.offchip.transfers.addresses import Residency, addresses_of
from tvm_serenity.offchip.transfers.plan import (
    Compute,
    Copy,
    Discard,
    Relocate,
    SlowAccess,
    Step,
    TransferPlan,
)
from tvm_serenity.offchip.transfers.prefetch import prefetched
from tvm_serenity.plan import Buffer, PlanOptions, plan

HOME_STEPS = 200_000
"""Work of the planner for the homes in slow memory."""


def executable(alignment_bytes: int = 1) -> Model:
    """Return the memory model of transfer plans: unsplit tensors, managed by software.

    Tensors and workspaces occupy multiples of ``alignment_bytes``.
    """
    return Model(None, Memory.SCRATCHPAD, alignment_bytes=alignment_bytes)


def transfer_plan(
    subject: Graph | Subject,
    capacity_bytes: int,
    order: Sequence[int] | None = None,
    policy: str = "belady",
    model: Model | None = None,
    seconds: float = inf,
) -> TransferPlan:
    """Return the plan that moves exactly the bytes that ``simulate`` counts.

    ``subject``: a graph, perhaps with how often operators go over tensors, which ``direct`` counts.
    ``model``: of ``executable``. ``seconds``: the time limit of the lower bound. Raises
    :class:`InputError` for another model, for an unknown policy, or if an operator needs more than
    the capacity (``direct`` has no need).
    """
    model = model or executable()
    check_policy(policy)
    subject = Subject(subject) if isinstance(subject, Graph) else subject
    graph = subject.graph
    _check(graph, model)
    order = tuple(range(len(graph.ops)) if order is None else order)
    storages = storages_of(subject, model)
    trace = trace_of_storages(storages, order)
    check_capacity(need_under(policy, trace.need_bytes), capacity_bytes)
    decided, counted = _decisions(trace, capacity_bytes, policy)
    found = _Decided(storages, order, trace, capacity_bytes, decided).plan()
    bound = trace.compulsory_bytes
    with suppress(TimeoutError):  # compulsory traffic is a bound as well
        bound += forced_bytes(storages, capacity_bytes, seconds)
    made = TransferPlan(
        graph=graph,
        order=order,
        policy=policy,
        capacity_bytes=capacity_bytes,
        alignment_bytes=model.alignment_bytes,
        homes=found.homes,
        steps=tuple(found.steps),
        fast_bytes=found.fast_bytes,
        slow_bytes=found.slow_bytes,
        compulsory_bytes=trace.compulsory_bytes,
        lower_bound_bytes=bound,
        passes=subject.passes,
    )
    if (made.read_bytes, made.write_bytes) != counted:
        raise CheckError(
            f"{graph.name}: the plan reads {made.read_bytes:,} and writes {made.write_bytes:,} "
            f"bytes, the simulation {counted[0]:,} and {counted[1]:,}"
        )
    return made


def _check(graph: Graph, model: Model) -> None:
    """Raise :class:`InputError` for what cannot be executed as transfers of unsplit tensors."""
    if model.block_bytes is not None or model.memory is not Memory.SCRATCHPAD:
        raise InputError(
            "only unsplit tensors in a scratchpad can be executed as transfers; a cache and blocks "
            "are models; set the block to tensor and the memory to scratchpad"
        )
    if model.inputs is not InputPlace.OFF_CHIP or model.weights is not Weights.NONE:
        raise InputError(
            "a transfer plan starts with its inputs off-chip and moves no weights; leave out both "
            "options"
        )
    for tensor in graph.tensors:
        if tensor.role is Role.EXTERNAL:
            raise InputError(
                f"{graph.name}: tensor {tensor.name!r} is in the caller's memory; a transfer plan "
                "needs it as an input or output of the graph"
            )


@dataclass(frozen=True)
class _Group:
    """What a policy decides for one operator: before it, what it brings in, and after it."""

    evicted: list[tuple[int, bool]] = field(default_factory=list)  # block, whether it is stored
    loaded: list[int] = field(default_factory=list)
    dropped: list[tuple[int, bool]] = field(default_factory=list)


@dataclass(frozen=True)
class _Addressed:
    """The result of :class:`_Decided`."""

    steps: list[Step]
    homes: dict[int, int]
    fast_bytes: int
    slow_bytes: int


class _Decided:
    """The decisions of a policy on one trace, by operator of the order."""

    def __init__(
        self,
        storages: Storages,
        order: tuple[int, ...],
        trace: Trace,
        capacity_bytes: int,
        decided: Iterable[Decision],
    ) -> None:
        self.storages, self.order, self.capacity = storages, order, capacity_bytes
        self.graph, self.rooms = storages.graph, trace.room.tolist()
        self.head = storage_heads(storages, order).tolist()
        self.accesses = storages.accesses.in_order(order)
        # of each group, the place of its operator in the order
        groups = [p for p in range(len(order)) for _ in range(*self.accesses.group[p : p + 2])]
        self.groups = [_Group() for _ in order]
        self.residencies: list[Residency] = []
        self.of_block: dict[int, int] = {}  # the residency of each resident block
        self.at: list[dict[int, int]] = [{} for _ in order]  # of each operator, by block
        self.scratch: dict[int, int] = {}
        came: dict[int, int] = {}
        # of each operator, its blocks in slow memory; -1: its workspace
        self.direct: list[set[int]] = [set() for _ in order]
        self.passes = [1] * len(trace.block) if trace.passes is None else trace.passes.tolist()
        stored = False
        spans: dict[tuple[int, int], int] = {}
        for group, action, block in decided:
            place = groups[group]
            if action is Action.EVICT:
                self.groups[place].evicted.append((block, stored))
                spans[block, came.pop(block)] = place
            elif action is Action.DROP:
                self.groups[place].dropped.append((block, stored))
                spans[block, came.pop(block)] = place + 1
            elif action is Action.DIRECT:
                self.direct[place].add(block)
            elif action is not Action.STORE:
                came[block] = place
                if action is Action.LOAD:
                    self.groups[place].loaded.append(block)
            stored = action is Action.STORE
        for (block, start), stop in sorted(spans.items(), key=lambda one: one[0][1]):
            self.residencies.append(Residency(block, start, stop, self.rooms[block]))
        for place in range(len(order)):
            reserve = int(storages.model.aligned(self.accesses.reserve[place : place + 1])[0])
            if reserve and -1 not in self.direct[place]:
                self.scratch[place] = len(self.residencies)
                self.residencies.append(Residency(-1, place, place + 1, reserve))

    def plan(self) -> _Addressed:
        """Return the steps with addresses in both memories."""
        alignment = self.storages.model.alignment_bytes
        starts = {(r.block, r.start): i for i, r in enumerate(self.residencies) if r.block >= 0}
        loads = ((block, p) for p, group in enumerate(self.groups) for block in group.loaded)
        loaded = [starts[load] for load in loads]
        placed = addresses_of(self.residencies, self.capacity, alignment, loaded)
        relocations: dict[int, list[tuple[int, int]]] = {}
        for moved in placed.relocations:
            relocations.setdefault(moved.before, []).append((moved.index, moved.address))
        steps: list[Step] = []
        content = [int(t) for t in self.storages.tensor]  # by block: whose bytes it holds
        address: dict[int, int] = {}  # by block, while it is resident
        for place, op in enumerate(self.order):
            group = self.groups[place]
            steps += self._left(group.evicted, content, address)
            for index, to in relocations.get(place, ()):
                block = self.residencies[index].block
                steps.append(Relocate(content[block], address[block], to))
                address[block] = to
            for block in group.loaded:
                address[block] = placed.first[starts[block, place]]
                steps.append(Copy(content[block], address[block]))
            steps.append(self._compute(place, op, starts, placed.first, content, address))
            steps += self._left(group.dropped, content, address)
        steps = prefetched(self.graph, steps)
        homes, scratch, slow = self._homes(steps, alignment)
        steps = [
            replace(step, workspace=scratch[number])
            if isinstance(step, Compute) and number in scratch
            else step
            for number, step in enumerate(steps)
        ]
        return _Addressed(steps, homes, placed.arena_bytes, slow)

    def _left(
        self, blocks: Sequence[tuple[int, bool]], content: list[int], address: dict[int, int]
    ) -> Iterator[Step]:
        """Yield the steps that end residencies."""
        for block, stored in blocks:
            if stored:
                yield Copy(content[block], address[block], is_store=True)
            yield Discard(content[block])
            del address[block]

    def _compute(
        self,
        place: int,
        op: int,
        starts: dict[tuple[int, int], int],
        first: Sequence[int],
        content: list[int],
        address: dict[int, int],
    ) -> Compute:
        """Return the step of an operator; what it writes takes its block."""
        begin, end = self.accesses.begin[place : place + 2].tolist()
        operands, slow, direct = dict[int, int](), list[SlowAccess](), self.direct[place]
        for storage, kind, passes in zip(
            self.accesses.block[begin:end].tolist(),
            self.accesses.kind[begin:end].tolist(),
            self.passes[begin:end],
            strict=True,
        ):
            block = self.head[storage]
            owner = int(self.storages.tensor[storage])
            if block in direct:
                slow.append(SlowAccess(owner, passes * (kind != WRITE), passes * (kind != READ)))
            else:
                if block not in address:
                    address[block] = first[starts[block, place]]
                operands[owner] = address[block]
            if kind != READ:
                content[block] = owner
        scratch = self.scratch.get(place)
        workspace = None if scratch is None else first[scratch]
        return Compute(op, operands, workspace, tuple(slow), -1 in direct)

    def _homes(
        self, steps: Sequence[Step], alignment: int
    ) -> tuple[dict[int, int], dict[int, int], int]:
        """Return the addresses in slow memory, and their arena.

        They are those of each tensor that is ever there, and of workspaces there, by step.
        """
        graph, root = self.graph, self.graph.storage
        given = [root[t] for t in graph.inputs if graph.in_profile[t]]
        given = [t for t in dict.fromkeys(given) if graph.tensors[t].size_bytes]
        spans = {tensor: [0, 1] for tensor in given}
        for number, step in enumerate(steps):
            met = [step.tensor] if isinstance(step, Copy) else []
            if isinstance(step, Compute):
                met = [one.tensor for one in step.slow]
            for tensor in met:
                spans.setdefault(tensor, [number, number])[1] = number + 1
        for tensor in graph.outputs:
            if root[tensor] in spans:
                spans[root[tensor]][1] = len(steps) + 1
        buffers = [
            Buffer(f"{t}", start, stop, graph.tensors[t].size_bytes, alignment)
            for t, (start, stop) in spans.items()
        ]
        scratch = {
            number: graph.ops[step.op].workspace_bytes
            for number, step in enumerate(steps)
            if isinstance(step, Compute) and step.slow_workspace
        }
        buffers += [
            Buffer(f"workspace {number}", number, number + 1, size, alignment)
            for number, size in scratch.items()
        ]
        found = plan(buffers, options=PlanOptions(steps=HOME_STEPS, time_limit_s=None))
        homes = dict(zip(spans, found.offsets[: len(spans)], strict=True))
        spaces = dict(zip(scratch, found.offsets[len(spans) :], strict=True))
        return homes, spaces, found.arena_bytes


def _decisions(
    trace: Trace, capacity: int, policy: str
) -> tuple[Iterable[Decision], tuple[int, int]]:
    """Return what a policy decides, in order of time, and the bytes read and written by it."""
    if policy == DIRECT:
        use = direct_use(trace, capacity)
        return use.decisions, (use.read_bytes, use.write_bytes)
    arrays = trace.block, trace.kind, trace.kept, trace.group_end, trace.reserve, trace.room
    counted = simulate(trace, capacity, policy)
    decided = decisions(*arrays, capacity, tuple(POLICIES).index(policy))
    return decided, (counted.read_bytes, counted.write_bytes)
