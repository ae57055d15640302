"""A policy's decisions as a transfer plan: residencies, addresses, homes, steps."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf

from tvm_serenity.errors import CheckError, InputError
from tvm_serenity.graph import Graph, Role
from tvm_serenity.offchip.accesses import READ
from tvm_serenity.offchip.bound import forced_bytes
from tvm_serenity.offchip.model import InputPlace, Memory, Model, Weights
from tvm_serenity.offchip.policies import POLICIES, check_capacity, simulate
from tvm_serenity.offchip.reference import Action, decisions
from tvm_serenity.offchip.storages import Storages, storages_of
from tvm_serenity.offchip.trace import Trace, storage_heads, trace_of_storages
from tvm_serenity.offchip.transfers.addresses import Residency, addresses_of
from tvm_serenity.offchip.transfers.plan import Compute, Copy, Discard, Relocate, Step, TransferPlan
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
    graph: Graph,
    capacity_bytes: int,
    order: Sequence[int] | None = None,
    policy: str = "belady",
    model: Model | None = None,
    seconds: float = inf,
) -> TransferPlan:
    """Return the plan that moves exactly the bytes that ``simulate`` counts.

    ``model``: of ``executable``. ``seconds``: the time limit of the lower bound. Raises
    :class:`InputError` for another model, for an unknown policy, or if an operator needs more than
    the capacity.
    """
    model = model or executable()
    if policy not in POLICIES:
        raise InputError(f"unknown policy {policy!r}; there are {', '.join(POLICIES)}")
    _check(graph, model)
    order = tuple(range(len(graph.ops)) if order is None else order)
    storages = storages_of(graph, model)
    trace = trace_of_storages(storages, order)
    check_capacity(trace.need_bytes, capacity_bytes)
    found = _Decided(storages, order, trace, capacity_bytes, policy).plan()
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
    )
    counted = simulate(trace, capacity_bytes, policy)
    if (made.read_bytes, made.write_bytes) != (counted.read_bytes, counted.write_bytes):
        raise CheckError(
            f"{graph.name}: the plan reads {made.read_bytes:,} and writes {made.write_bytes:,} "
            f"bytes, the simulation {counted.read_bytes:,} and {counted.write_bytes:,}"
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
        policy: str,
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
        number = tuple(POLICIES).index(policy)
        arrays = trace.block, trace.kind, trace.kept, trace.group_end, trace.reserve, trace.room
        stored = False
        spans: dict[tuple[int, int], int] = {}
        for group, action, block in decisions(*arrays, capacity_bytes, number):
            place = groups[group]
            if action is Action.EVICT:
                self.groups[place].evicted.append((block, stored))
                spans[block, came.pop(block)] = place
            elif action is Action.DROP:
                self.groups[place].dropped.append((block, stored))
                spans[block, came.pop(block)] = place + 1
            elif action is not Action.STORE:
                came[block] = place
                if action is Action.LOAD:
                    self.groups[place].loaded.append(block)
            stored = action is Action.STORE
        for (block, start), stop in sorted(spans.items(), key=lambda one: one[0][1]):
            self.residencies.append(Residency(block, start, stop, self.rooms[block]))
        for place in range(len(order)):
            reserve = int(storages.model.aligned(self.accesses.reserve[place : place + 1])[0])
            if reserve:
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
        homes, slow = self._homes(steps, alignment)
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
        operands = dict[int, int]()
        for storage, kind in zip(
            self.accesses.block[begin:end].tolist(),
            self.accesses.kind[begin:end].tolist(),
            strict=True,
        ):
            block = self.head[storage]
            if block not in address:
                address[block] = first[starts[block, place]]
            owner = int(self.storages.tensor[storage])
            operands[owner] = address[block]
            if kind != READ:
                content[block] = owner
        scratch = self.scratch.get(place)
        return Compute(op, operands, None if scratch is None else first[scratch])

    def _homes(self, steps: Sequence[Step], alignment: int) -> tuple[dict[int, int], int]:
        """Return the address in slow memory of each tensor that is ever there, and their arena."""
        graph, root = self.graph, self.graph.storage
        given = [root[t] for t in graph.inputs if graph.in_profile[t]]
        given = [t for t in dict.fromkeys(given) if graph.tensors[t].size_bytes]
        spans = {tensor: [0, 1] for tensor in given}
        for number, step in enumerate(steps):
            if isinstance(step, Copy):
                span = spans.setdefault(step.tensor, [number, number])
                span[1] = number + 1
        for tensor in graph.outputs:
            if root[tensor] in spans:
                spans[root[tensor]][1] = len(steps) + 1
        buffers = [
            Buffer(f"{t}", start, stop, graph.tensors[t].size_bytes, alignment)
            for t, (start, stop) in spans.items()
        ]
        found = plan(buffers, options=PlanOptions(steps=HOME_STEPS, time_limit_s=None))
        return dict(zip(spans, found.offsets, strict=True)), found.arena_bytes
