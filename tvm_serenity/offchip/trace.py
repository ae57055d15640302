"""Traces: the accesses of a graph under an order, by storage or by address in an arena."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph, Role, is_order
from tvm_serenity.memory import live_ranges
from tvm_serenity.offchip.accesses import MODIFY, READ, WRITE, Accesses, Bytes8, Ints, Longs
from tvm_serenity.offchip.model import Memory, Model, Weights
from tvm_serenity.offchip.storages import Storages, Subject, storages_of


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace:
    """Accesses in time order: ``block[i]`` is read (1), written (2) or partly rewritten (3).

    ``size``: bytes moved per block; ``slot_bytes``: bytes occupied by a block (None: its size, up
    to a multiple of ``alignment_bytes``).
    ``home``: the content is off-chip at the start; ``kept``: it must be at the end. Groups end
    before ``group_end``; a scratchpad holds a group at once, beside ``reserve`` bytes, of which
    ``workspace`` are accessed (None: all).
    ``passes``: how often an operator goes over the bytes of an access (None: each once).
    ``streamed_bytes`` are weights, read past the on-chip memory. ``name_of_group`` names the op of
    a group in errors.
    """

    block: Ints
    kind: Bytes8
    size: Longs
    home: Bytes8
    kept: Bytes8
    group_end: Longs
    reserve: Longs
    slot_bytes: int | None
    memory: Memory = Memory.CACHE
    streamed_bytes: int = 0
    alignment_bytes: int = 1
    workspace: Longs | None = None
    passes: Longs | None = None
    name_of_group: Callable[[int], str] = "".format

    @property
    def is_cache(self) -> bool:
        """Whether accesses come one by one to blocks of one slot each."""
        return self.memory is Memory.CACHE and self.slot_bytes is not None

    @cached_property
    def room(self) -> Longs:
        """Bytes that each block occupies."""
        if self.slot_bytes is None:
            return -(-self.size // self.alignment_bytes) * self.alignment_bytes
        return np.full(len(self.size), self.slot_bytes, np.int64)

    @cached_property
    def compulsory_bytes(self) -> int:
        """Traffic with unlimited on-chip memory: first reads from off-chip, outputs, weights."""
        first = np.full(len(self.size), WRITE, np.uint8)
        first[self.block[::-1]] = self.kind[::-1]  # the first access in time to a block remains
        read = self.home.astype(bool) & (first != WRITE)
        dirty = np.zeros(len(self.size), bool)
        dirty[self.block[self.kind != READ]] = True
        writes = self.size[dirty & self.kept.astype(bool)].sum()
        return int(self.size[read].sum() + writes) + self.streamed_bytes

    @cached_property
    def need_bytes(self) -> tuple[int, str]:
        """The least capacity that works, and the op that needs it ("": one block)."""
        if self.is_cache:
            return self.slot_bytes or 1, ""
        begins = np.concatenate([[0], self.group_end[:-1]]).astype(np.int64)
        needs = self.reserve.copy()
        for g in np.flatnonzero(self.group_end > begins):
            blocks = np.unique(self.block[begins[g] : self.group_end[g]])
            needs[g] += int(self.room[blocks].sum())
        if not len(needs):
            return 0, ""
        worst = int(np.argmax(needs))
        return int(needs[worst]), self.name_of_group(worst)


def trace_of(
    subject: Graph | Subject, order: Sequence[int] | None = None, model: Model | None = None
) -> Trace:
    """Return the accesses of ``subject`` run in ``order`` (default: the given one).

    Raises :class:`InputError` if ``order`` is not a topological order of all ops.
    """
    storages = storages_of(subject, model or Model())
    return trace_of_storages(storages, order)


def trace_of_storages(storages: Storages, order: Sequence[int] | None = None) -> Trace:
    """Return the trace of an order of the storages' graph."""
    graph, model = storages.graph, storages.model
    order = range(len(graph.ops)) if order is None else order
    if not is_order(graph, order):
        raise InputError(
            f"{graph.name}: the order is not a topological order of its {len(graph.ops)} ops"
        )
    accesses, before = storages.accesses.in_order(order), storages.preamble
    block = np.concatenate([before, accesses.block])
    groups = np.diff(accesses.group)
    ends = accesses.ends + np.repeat(accesses.begin[:-1], groups) + len(before)
    if model.memory is Memory.SCRATCHPAD:
        block = storage_heads(storages, order)[block]
    return Trace(
        block=block,
        kind=np.concatenate([np.full(len(before), WRITE, np.uint8), accesses.kind]),
        size=storages.size,
        home=storages.home,
        kept=storages.kept if model.memory is Memory.CACHE else _kept(storages, order),
        group_end=np.concatenate([np.arange(1, len(before) + 1), ends]),
        reserve=np.concatenate(
            [np.zeros(len(before), np.int64), np.repeat(model.aligned(accesses.reserve), groups)]
        ),
        workspace=np.concatenate(
            [np.zeros(len(before), np.int64), np.repeat(accesses.reserve, groups)]
        ),
        slot_bytes=model.block_bytes,
        alignment_bytes=model.alignment_bytes,
        memory=model.memory,
        streamed_bytes=weight_bytes(graph) if model.weights is not Weights.NONE else 0,
        passes=_passes(storages, order, len(before)),
        name_of_group=partial(_name_of, graph, order, accesses, len(before)),
    )


def _passes(storages: Storages, order: Sequence[int], before: int) -> Longs | None:
    """Return how often each access goes over its bytes, after ``before`` writes of inputs."""
    known = {(op, tensor): times for op, tensor, times in storages.subject.passes}
    if not known:
        return None
    accesses = storages.accesses.in_order(order)
    ops = np.repeat(order, np.diff(accesses.begin)).tolist()
    tensors = storages.block_tensor[accesses.block].tolist()
    times = [known.get(pair, 1) for pair in zip(ops, tensors, strict=True)]
    return np.array([1] * before + times, np.int64)


def need_of(storages: Storages) -> tuple[int, str]:
    """Return ``need_bytes``, which all orders share; a cache needs no trace for it."""
    if storages.model.memory is Memory.CACHE:
        return storages.model.block_bytes or 1, ""
    return trace_of_storages(storages).need_bytes


def weight_bytes(graph: Graph) -> int:
    """Return the bytes of weights that all ops read; shared weights count once per op."""
    constant = {t for t, tensor in enumerate(graph.tensors) if tensor.role is Role.CONSTANT}
    constant |= {t for op in graph.constant_ops for t in graph.ops[op].outputs}
    return sum(
        graph.tensors[t].size_bytes
        for i, op in enumerate(graph.ops)
        if i not in graph.constant_ops and op.view_of is None
        for t in dict.fromkeys(op.inputs)
        if t in constant
    )


def addressed_trace(
    graph: Graph,
    order: Sequence[int],
    offsets: Sequence[int],
    model: Model | None = None,
) -> Trace:
    """Return the trace by address: blocks of one arena, with ranges placed at ``offsets``.

    ``offsets[i]`` is the offset of range i of ``live_ranges(graph, order)``. A block may hold parts
    of several tensors, at once or one after the other. Writing a part of a block whose other bytes
    are live reads it first (kind 3). Inputs and outputs are in the arena.
    """
    model = model or Model()
    if model.memory is not Memory.CACHE or model.block_bytes is None:
        raise InputError(
            "a trace by address needs a cache with a block size; set one, or trace by storage"
        )
    ranges = live_ranges(graph, order)
    if len(offsets) != len(ranges) or any(offset < 0 for offset in offsets):
        raise InputError(
            f"{graph.name}: {len(offsets)} offsets for {len(ranges)} live ranges; give one offset "
            "of 0 or more per range"
        )
    from tvm_serenity.offchip.address import addressed

    block, kind, home, kept, accesses = addressed(graph, order, ranges, offsets, model)
    arena = max((o + r.size_bytes for o, r in zip(offsets, ranges, strict=True)), default=0)
    sizes = np.full(model.blocks(arena), model.block_bytes, np.int64)
    return Trace(
        block=block,
        kind=kind,
        size=sizes,
        home=home,
        kept=kept,
        group_end=np.arange(1, len(block) + 1, dtype=np.int64),
        reserve=np.zeros(len(block), np.int64),
        slot_bytes=model.block_bytes,
        memory=model.memory,
        streamed_bytes=weight_bytes(graph) if model.weights is not Weights.NONE else 0,
        name_of_group=partial(_name_of, graph, order, accesses, len(block) - len(accesses.block)),
    )


def _name_of(
    graph: Graph, order: Sequence[int], accesses: Accesses, before: int, group: int
) -> str:
    """Return the name of the op of a group; ``before`` groups precede the first op's."""
    if group < before:
        return "graph inputs"
    step = int(np.searchsorted(accesses.group, group - before, side="right")) - 1
    return graph.ops[order[step]].name


def storage_heads(storages: Storages, order: Sequence[int]) -> Ints:
    """Return, for each block, the block whose slot it takes over in place, or itself."""
    result = np.arange(storages.count_blocks, dtype=np.int32)
    for live in live_ranges(storages.graph, order):
        heads = storages.of_tensor(live.tensors[0]) if live.tensors else range(0)
        for tensor in live.tensors:
            members = storages.of_tensor(tensor)
            if len(members) == len(heads) == 1:  # storages written in parts stay by themselves
                begin, end = storages.first[members[0]], storages.first[members[0] + 1]
                start = storages.first[heads[0]]
                result[begin:end] = np.arange(start, start + end - begin)
    return result


def _kept(storages: Storages, order: Sequence[int]) -> Bytes8:
    """Return the blocks whose last content is an output."""
    kept = np.zeros(storages.count_blocks, np.uint8)
    kept[storage_heads(storages, order)[np.flatnonzero(storages.kept)]] = 1
    return kept


__all__ = ["MODIFY", "READ", "WRITE", "Subject", "Trace", "addressed_trace", "trace_of"]
