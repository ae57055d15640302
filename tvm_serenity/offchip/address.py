"""The trace by address: the blocks of the arena that each op reads and writes."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tvm_serenity.graph import Graph
from tvm_serenity.memory import LiveRange
from tvm_serenity.offchip.accesses import (
    MODIFY,
    READ,
    WRITE,
    Accesses,
    Bytes8,
    Ints,
    Spans,
    streamed,
)
from tvm_serenity.offchip.model import InputPlace, Model


def addressed(
    graph: Graph,
    order: Sequence[int],
    ranges: Sequence[LiveRange],
    offsets: Sequence[int],
    model: Model,
) -> tuple[Ints, Bytes8, Bytes8, Bytes8, Accesses]:
    """Return blocks, kinds, home, kept and the accesses of each op, for placed live ranges."""
    arena = _Arena(graph, ranges, offsets, model.block_bytes or 1, len(order))
    blocks: list[Ints] = []
    kinds: list[Bytes8] = []
    home = np.zeros(arena.blocks, np.uint8)
    for index, live in enumerate(ranges):
        if graph.producer[live.tensors[0]] < 0 if live.tensors else False:
            if model.inputs is InputPlace.OFF_CHIP:
                home[arena.span(index)] = 1
            else:
                written = arena.numbers(index)
                blocks.append(written)
                partly = arena.shared(written, 0)
                kinds.append(np.where(partly, MODIFY, WRITE).astype(np.uint8))
    accesses = _accesses(graph, order, arena)
    for step, (begin, end) in enumerate(pairwise(accesses.begin.tolist())):
        own, kind = accesses.block[begin:end], accesses.kind[begin:end]
        shared = arena.shared(own, step)
        blocks.append(own)
        kinds.append(np.where((kind == WRITE) & shared, MODIFY, kind).astype(np.uint8))
    kept = np.zeros(arena.blocks, np.uint8)
    for index, live in enumerate(ranges):
        if live.stop >= len(order) and not graph.returned.isdisjoint(live.tensors):
            kept[arena.span(index)] = 1
    block = np.concatenate(blocks) if blocks else np.zeros(0, np.int32)
    kind_of = np.concatenate(kinds) if kinds else np.zeros(0, np.uint8)
    return _opened(block, kind_of, home), kind_of, home, kept, accesses


class _Arena:
    """The blocks of each range, and the blocks that are live at a step."""

    def __init__(
        self,
        graph: Graph,
        ranges: Sequence[LiveRange],
        offsets: Sequence[int],
        block: int,
        steps: int,
    ) -> None:
        self.ranges, self.offsets, self.block = ranges, offsets, block
        ends = [o + r.size_bytes for o, r in zip(offsets, ranges, strict=True)]
        self.ends = ends
        self.blocks = -(-max(ends, default=0) // block)
        self.of_tensor = {t: i for i, r in enumerate(ranges) for t in r.tensors}
        self.workspace = {r.workspace_of: i for i, r in enumerate(ranges) if not r.tensors}
        self.live: list[list[int]] = [[] for _ in range(steps)]
        for i, r in enumerate(ranges):
            for live in self.live[max(0, r.start) : r.stop]:
                live.append(i)

    def span(self, index: int) -> slice:
        if self.ranges[index].size_bytes == 0:
            return slice(0, 0)
        return slice(self.offsets[index] // self.block, -(-self.ends[index] // self.block))

    def numbers(self, index: int) -> Ints:
        span = self.span(index)
        return np.arange(span.start, span.stop, dtype=np.int32)

    def shared(self, numbers: Ints, step: int) -> npt.NDArray[np.bool_]:
        """Return which blocks hold bytes of more than one range that is live at the step."""
        count = np.zeros(self.blocks, np.int32)
        for index in self.live[step] if self.live else ():
            count[self.span(index)] += 1
        return np.asarray(count[numbers] > 1)


def _accesses(graph: Graph, order: Sequence[int], arena: _Arena) -> Accesses:
    """Return the accesses of the op of each step, in the streaming order of a trace by storage."""
    spans = [
        (step, arena.span(i).start, arena.span(i).stop, kind)
        for step, op in enumerate(order)
        for i, kind in _operands(graph, op, arena)
    ]
    work = [
        (step, arena.span(arena.workspace[op]).start, arena.span(arena.workspace[op]).stop, WRITE)
        for step, op in enumerate(order)
        if op in arena.workspace
    ]
    none = np.zeros(len(order), np.int64)
    return streamed(len(order), Spans.of(spans), Spans.of(work), False, none)


def _operands(graph: Graph, op: int, arena: _Arena) -> list[tuple[int, int]]:
    """Return the ranges that an op reads, then those that it writes, with the kind of access."""
    node = graph.ops[op]
    if op in graph.constant_ops:
        return []
    read = dict.fromkeys(arena.of_tensor[t] for t in node.inputs if t in arena.of_tensor)
    written = dict.fromkeys(arena.of_tensor[t] for t in node.outputs if t in arena.of_tensor)
    kind = WRITE
    # an op that accumulates into its storage, or a view without accesses
    if node.view_of is not None:
        shown, kind = arena.of_tensor.get(node.view_of, -1), MODIFY
        read.pop(shown, None)
        written = dict.fromkeys([shown] if shown >= 0 and read else [])
    return [*((i, READ) for i in read), *((i, kind) for i in written)]


def _opened(block: Ints, kind: Bytes8, home: Bytes8) -> Ints:
    """Make a partial write a full one, in place, if the block never had content."""
    seen, first = np.unique(block, return_index=True)
    fresh = first[(kind[first] == MODIFY) & (home[seen] == 0)]
    kind[fresh] = WRITE
    return block
