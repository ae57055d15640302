"""The address-true trace: which blocks of the arena each op reads and writes."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.graph import Graph
from tvm_serenity.memory import LiveRange
from tvm_serenity.offchip.model import Model, Place
from tvm_serenity.offchip.storages import MODIFY, READ, WRITE, Bytes8, Ints

Names = tuple[tuple[int, str], ...]


def addressed(
    graph: Graph,
    order: Sequence[int],
    ranges: Sequence[LiveRange],
    offsets: Sequence[int],
    model: Model,
) -> tuple[Ints, Bytes8, Bytes8, Bytes8, Names]:
    """Return blocks, kinds, home, kept and where each op starts, for placed live ranges."""
    arena = _Arena(graph, ranges, offsets, model.block_bytes or 1, len(order))
    blocks: list[Ints] = []
    kinds: list[Bytes8] = []
    home = np.zeros(arena.blocks, np.uint8)
    names: list[tuple[int, str]] = []
    for index, found in enumerate(ranges):
        if graph.producer[found.tensors[0]] < 0 if found.tensors else False:
            if model.inputs is Place.OFF_CHIP:
                home[arena.span(index)] = 1
            else:
                blocks.append(arena.numbers(index))
                kinds.append(arena.write_kinds(index, 0))
    for step, op in enumerate(order):
        names.append((sum(map(len, blocks)), graph.ops[op].name))
        for index, kind in _touched(graph, op, arena):
            numbers = arena.numbers(index)
            blocks.append(numbers)
            writes = arena.write_kinds(index, step)
            kinds.append(writes if kind == WRITE else np.full(len(numbers), READ, np.uint8))
    kept = np.zeros(arena.blocks, np.uint8)
    for index, found in enumerate(ranges):
        if found.tensors and found.stop >= len(order) and _returned(graph, found):
            kept[arena.span(index)] = 1
    block = np.concatenate(blocks) if blocks else np.zeros(0, np.int32)
    kind_of = np.concatenate(kinds) if kinds else np.zeros(0, np.uint8)
    return _opened(block, kind_of, home), kind_of, home, kept, tuple(names)


class _Arena:
    """Where each range lies, in blocks, and which blocks are live at a step."""

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
        self.live = [
            [i for i, r in enumerate(ranges) if r.start <= step < r.stop] for step in range(steps)
        ]

    def span(self, index: int) -> slice:
        if self.ranges[index].size_bytes == 0:
            return slice(0, 0)
        return slice(self.offsets[index] // self.block, -(-self.ends[index] // self.block))

    def numbers(self, index: int) -> Ints:
        span = self.span(index)
        return np.arange(span.start, span.stop, dtype=np.int32)

    def write_kinds(self, index: int, step: int) -> Bytes8:
        """Writes, but partial where another live range has bytes in an edge block."""
        span = self.span(index)
        kinds = np.full(span.stop - span.start, WRITE, np.uint8)
        for edge in {span.start, span.stop - 1} if len(kinds) else ():
            if any(
                other != index and self.span(other).start <= edge < self.span(other).stop
                for other in (self.live[step] if self.live else ())
            ):
                kinds[edge - span.start] = MODIFY
        return kinds


def _touched(graph: Graph, op: int, arena: _Arena) -> list[tuple[int, int]]:
    """Ranges that the op accesses: scratch first, inputs, outputs, scratch again."""
    node = graph.ops[op]
    if op in graph.constant_ops or node.view_of is not None:
        return []
    read = dict.fromkeys(arena.of_tensor[t] for t in node.inputs if t in arena.of_tensor)
    made = dict.fromkeys(arena.of_tensor[t] for t in node.outputs if t in arena.of_tensor)
    work = [arena.workspace[op]] if op in arena.workspace else []
    return [
        *((i, WRITE) for i in work),
        *((i, READ) for i in read),
        *((i, WRITE) for i in made),
        *((i, READ) for i in work),
    ]


def _returned(graph: Graph, found: LiveRange) -> bool:
    return any(t in graph.outputs for t in found.tensors)


def _opened(block: Ints, kind: Bytes8, home: Bytes8) -> Ints:
    """Turn a partial write into a whole one where the block never had content; in place."""
    seen, first = np.unique(block, return_index=True)
    fresh = first[(kind[first] == MODIFY) & (home[seen] == 0)]
    kind[fresh] = WRITE
    return block
