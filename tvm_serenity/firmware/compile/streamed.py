"""A network that runs in fast memory of a given size, from and to a larger, slower memory.

The order is searched for the least traffic, the transfers are those of a transfer plan of policy
``direct`` (``offchip.transfers``), and tensors are at its addresses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tvm

from tvm_serenity.boards import Board
from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.firmware.c_names import identifier
from tvm_serenity.firmware.compile.compiled import Compiled
from tvm_serenity.firmware.compile.unsplit_program import Assembled, UnsplitMaker, program_of
from tvm_serenity.firmware.place.memory_map import MemoryMap, Room, fast_and_slow
from tvm_serenity.firmware.program import Place, Scratch
from tvm_serenity.firmware.select.choices import as_called, of_unsplit
from tvm_serenity.firmware.select.unsplit import UnsplitKernels
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.firmware.transfer import Transfer
from tvm_serenity.graph import Graph
from tvm_serenity.memory import LiveRange, peak_bytes
from tvm_serenity.offchip import Model, SearchOptions, Subject, simulate, trace_of, traffic_order
from tvm_serenity.offchip.policies import DIRECT
from tvm_serenity.offchip.transfers import (
    Compute,
    Copy,
    Discard,
    Relocate,
    TransferPlan,
    transfer_plan,
)
from tvm_serenity.offchip.transfers.solve import executable
from tvm_serenity.options.memory import BEST
from tvm_serenity.relax.pipeline import Prepared
from tvm_serenity.relax.read import BoundGraph
from tvm_serenity.search.deadline import seconds_left, within

SEARCH = SearchOptions(local_accesses=10_000_000, exact_accesses=10_000_000)
"""Limits of the search for an order: some seconds for a network of a hundred operators."""
HOME = -1
"""The residency of a tensor in slow memory."""


def streamed(
    module: tvm.IRModule,
    ready: Prepared,
    name: str,
    board: Board,
    settings: Settings,
    kernels: UnsplitKernels,
) -> Compiled:
    """Return the program of ``module`` with transfers, in the fast memory that ``settings`` allow.

    Kernels access in slow memory what is cheaper there, or has no room. Raises :class:`InputError`
    for a board with one memory, or a size beyond its fast memory.
    """
    capacity = settings.fast_memory_bytes
    assert capacity is not None
    fast, slow = fast_room(board, settings)
    graph = _named(kernels.graph())
    model = executable(kernels.alignment)
    passes = kernels.passes()
    with within(settings.time_limit_s):
        order = tuple(range(len(graph.ops)))
        if settings.order == BEST:
            settings.notify(f"ordering {len(order)} operators for little traffic")
            order = _best_order(graph, passes, capacity, model)
        ordered = graph.replace(ops=tuple(graph.ops[op] for op in order))
        place = {op: at for at, op in enumerate(order)}
        subject = _subject(ordered, {(place[op], t): n for (op, t), n in passes.items()})
        plan = transfer_plan(subject, capacity, policy=DIRECT, model=model, seconds=seconds_left())
    made = _StreamedMaker(graph, kernels, order, plan, fast.region.name, slow.region.name)
    assembled = made.assembled(identifier(name), module, kernels.region)
    fits = plan.slow_bytes <= slow.arena_bytes
    return Compiled(
        program=assembled.program,
        lowered=ready.reference,
        region=kernels.region,
        sources=assembled.sources,
        tensors=assembled.tensors,
        placed=made.memory_map(fits),
        peak_bytes=peak_bytes(graph, order),
        lower_bound_bytes=0,
        kept_float=ready.kept_float,
        folded=ready.folded,
        choices=as_called(of_unsplit(kernels, order), assembled.program),
        compiled_here={} if settings.codegen == "c" else kernels.plain,
        transfers=plan,
    )


def fast_room(board: Board, settings: Settings) -> tuple[Room, Room]:
    """Return the fast and the slow memory of a board, if the settings ask for no more of it."""
    fast, slow = fast_and_slow(board, settings.stack_bytes)
    capacity = settings.fast_memory_bytes
    if capacity is not None and capacity > fast.arena_bytes:
        raise InputError(
            f"--fast-memory {capacity:,} bytes: region {fast.region.name!r} of {board.name} has "
            f"{fast.arena_bytes:,} for tensors; give at most that"
        )
    return fast, slow


def _subject(graph: Graph, passes: Mapping[tuple[int, int], int]) -> Subject:
    """Return a graph with how often its operators go over tensors."""
    return Subject(graph, passes=tuple((op, t, n) for (op, t), n in passes.items()))


def _best_order(
    graph: Graph, passes: Mapping[tuple[int, int], int], capacity: int, model: Model
) -> tuple[int, ...]:
    """Return the order of least bytes: the one searched for Belady's policy, or the given one.

    The search is for a capacity in which each operator has all its tensors.
    """
    need, _ = trace_of(graph, model=model).need_bytes
    given = tuple(range(len(graph.ops)))
    searched = traffic_order(graph, max(need, capacity), model, SEARCH).order
    subject = _subject(graph, passes)

    def cost(order: tuple[int, ...]) -> int:
        return simulate(trace_of(subject, order, model), capacity, DIRECT).total_bytes

    return min((searched, given), key=cost)


def about_transfers(made: Compiled) -> dict[str, Any] | None:
    """Return what JSON says of transfers; None for a program without a plan of them."""
    plan = made.transfers
    if plan is None:
        return None
    fast, slow = made.placed.arena_bytes
    return {
        "fast": fast,
        "slow": slow,
        "capacity_bytes": plan.capacity_bytes,
        "policy": plan.policy,
        "read_bytes": plan.read_bytes,
        "write_bytes": plan.write_bytes,
        "total_bytes": plan.total_bytes,
        "copied_bytes": plan.copied_bytes,
        "direct_bytes": plan.direct_bytes,
        "prefetched_bytes": plan.prefetched_bytes,
        "moved_bytes": plan.moved_bytes,
        "compulsory_bytes": plan.compulsory_bytes,
        "lower_bound_bytes": plan.lower_bound_bytes,
    }


def _named(graph: Graph) -> Graph:
    """Return a graph whose tensors have distinct names, by which a plan calls them."""
    seen: dict[str, int] = {}
    tensors = []
    for tensor in graph.tensors:
        count = seen[tensor.name] = seen.get(tensor.name, 0) + 1
        name = tensor.name if count == 1 else f"{tensor.name}.{count}"
        tensors.append(replace(tensor, name=name))
    return graph.replace(tensors=tuple(tensors))


@dataclass(frozen=True, slots=True)
class _Resident:
    """A stay of a tensor in fast memory, by number, and where."""

    number: int
    place: Place


class _StreamedMaker(UnsplitMaker):
    """Makes the program of a plan with transfers between fast and slow memory.

    A tensor of the network becomes one tensor of the program in slow memory, and one for each
    time that it is in fast memory.
    """

    def __init__(
        self,
        graph: Graph,
        kernels: UnsplitKernels,
        order: Sequence[int],
        plan: TransferPlan,
        fast: str,
        slow: str,
    ) -> None:
        super().__init__(graph, MemoryMap((), (), (), {}, True), kernels)
        self.order, self.plan, self.fast, self.slow = order, plan, fast, slow
        self.resident: dict[int, _Resident] = {}
        self.entries: dict[tuple[int, int], int] = {}
        self.transfers: list[Transfer] = []
        self.stays = 0
        self.arena_bytes = {fast: plan.fast_bytes, slow: plan.slow_bytes}
        self.ranges: list[tuple[LiveRange, Place]] = []
        self.since: dict[int, int] = {}
        self.newest: dict[int, int] = {}  # by storage: the tensor that its bytes hold now

    def assembled(self, name: str, module: tvm.IRModule, region: BoundGraph) -> Assembled:
        """Return the program: inputs and outputs at home, steps with transfers between them."""
        inputs = [self.home(t) for t in self.graph.inputs]
        outputs = [self.home(t) for t in self.graph.outputs]
        for step in self.plan.steps:
            match step:
                case Copy(tensor, address, is_store):
                    if not is_store:
                        self.stay(tensor, address)
                    held = self.newest.get(tensor, tensor)
                    pair = self.at(held), self.home(held)
                    self.copied(*(pair if is_store else pair[::-1]))
                case Relocate(tensor, _, address):
                    held = self.newest.get(tensor, tensor)
                    before = self.at(held)
                    self.leave(tensor)
                    self.stay(tensor, address)
                    self.copied(before, self.at(held))
                case Discard(tensor):
                    self.leave(tensor)
                case Compute(op, addresses, workspace):
                    place = (
                        None
                        if workspace is None
                        else Place(self.slow if step.slow_workspace else self.fast, workspace)
                    )
                    self.computed(self.order[op], addresses, place)
        used = {name: size for name, size in self.arena_bytes.items() if size}
        return program_of(self, name, module, region, inputs, outputs, used, self.transfers)

    def computed(self, op: int, addresses: Mapping[int, int], workspace: Place | None) -> None:
        """Make the step of an operator; what it writes in fast memory stays from here on."""
        for root, address in addresses.items():
            if root not in self.resident:
                self.stay(root, address)
        if workspace is not None:
            size = self.graph.ops[op].workspace_bytes
            self.scratch[op] = Scratch(workspace, size)
            name = f"{self.graph.ops[op].name} workspace"
            now = len(self.steps)
            self.ranges.append((LiveRange(name, size, now, now + 1, (), op), workspace))
        self.step(op)
        sizes = self.graph.tensors
        for made in self.graph.ops[op].outputs:  # perhaps a sum in the bytes of another tensor
            root = self.graph.storage[made]
            if sizes[made].size_bytes == sizes[root].size_bytes:
                self.newest[root] = made
        written = {self.graph.storage[t] for t in self.graph.ops[op].outputs}
        for root in written & addresses.keys():  # in place: the overwritten tensor is gone
            for other, held in list(self.resident.items()):
                if other != root and held.place == self.resident[root].place:
                    self.leave(other)

    def stay(self, root: int, address: int) -> None:
        """A tensor is in fast memory from here on."""
        self.resident[root] = _Resident(self.stays, Place(self.fast, address))
        self.stays += 1
        self.since[root] = len(self.steps)

    def leave(self, root: int) -> None:
        """A tensor is in fast memory up to here."""
        place = self.resident.pop(root).place
        known = self.graph.tensors[root]
        start, stop = self.since.pop(root), len(self.steps)
        self.ranges.append((LiveRange(known.name, known.size_bytes, start, stop, (root,)), place))

    def at(self, tensor: int) -> int:
        """Return the tensor of the program where a tensor is in fast memory."""
        return self.entry(tensor, self.resident[self.graph.storage[tensor]])

    def home(self, tensor: int) -> int:
        """Return the tensor of the program where a tensor is in slow memory."""
        root = self.graph.storage[tensor]
        if root not in self.plan.homes:
            name = self.graph.tensors[tensor].name
            raise UnsupportedError(f"tensor {name!r}: nothing makes or reads it")
        return self.entry(tensor, _Resident(HOME, Place(self.slow, self.plan.homes[root])))

    def entry(self, tensor: int, held: _Resident) -> int:
        """Return the tensor of the program of a stay."""
        key = tensor, held.number
        if key not in self.entries:
            self.entries[key] = len(self.tensors)
            self.tensors.append(tensor)
            self.places.append(held.place)
        return self.entries[key]

    def tensor(self, tensor: int) -> int:
        """Return the operand of a step, in fast memory or at home."""
        is_fast = self.graph.storage[tensor] in self.resident
        self.index[tensor] = self.at(tensor) if is_fast else self.home(tensor)
        return self.index[tensor]

    def copied(self, source: int, target: int) -> None:
        """Copy a tensor of the program to another before the next step."""
        self.transfers.append(Transfer(len(self.steps), source, target))

    def memory_map(self, fits: bool) -> MemoryMap:
        """Return where each stay in fast memory is."""
        ranges = tuple(one for one, _ in self.ranges)
        regions = tuple(place.region for _, place in self.ranges)
        offsets = tuple(place.offset_bytes for _, place in self.ranges)
        return MemoryMap(ranges, regions, offsets, self.arena_bytes, fits)
