"""What moves: the storages of a graph, what each op does to them, and the order within an op.

A storage is a tensor and its views: one piece of data, read whole. Where ops write parts of it (a
``Subject`` says which), every part is a storage. Tensors in the caller's memory are storages too:
they start or end off-chip.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph, Role
from tvm_serenity.offchip.model import MAX_BLOCKS, InputPlace, Memory, Model

READ, WRITE, MODIFY = 1, 2, 3

SHORT_BLOCKS = 64
"""Accesses of ops of so few blocks are kept by their shape: many ops are alike."""

Part = tuple[int, int, int]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Bytes8 = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class OpAccesses:
    """Accesses of one op: blocks, kinds, and where each group ends; ``reserve`` is not for blocks.

    A group is what a scratchpad must hold at once; a cache takes accesses one by one.
    """

    block: Ints
    kind: Bytes8
    group_end: Longs
    reserve_bytes: int = 0


@dataclass(frozen=True)
class Subject:
    """A graph, and which part of its output's storage an op writes where that is not all of it.

    ``writes`` holds (op, first byte, last byte + 1).
    """

    graph: Graph
    writes: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class Storages:
    """The storages of a subject cut into blocks under ``model``.

    Storage s is ``parts[s]``: bytes of a tensor, or of op u's workspace where the tensor is
    ``-1 - u``. It has the blocks ``first[s]`` to before ``first[s + 1]``; the last may be short.
    """

    subject: Subject
    model: Model
    parts: tuple[Part, ...]
    first: tuple[int, ...]

    @property
    def graph(self) -> Graph:
        """The subject's graph."""
        return self.subject.graph

    @cached_property
    def of_tensor(self) -> dict[int, list[int]]:
        """The storages of each tensor that has any."""
        found: dict[int, list[int]] = {}
        for s, (tensor, _, _) in enumerate(self.parts):
            found.setdefault(tensor, []).append(s)
        return {t: found[root] for t, root in enumerate(self.graph.storage) if root in found}

    @property
    def count_blocks(self) -> int:
        """The number of blocks."""
        return self.first[-1]

    @cached_property
    def size(self) -> Longs:
        """Bytes in each block."""
        sizes = np.zeros(self.count_blocks, np.int64)
        for s, (_, lower, upper) in enumerate(self.parts):
            begin, end, total = self.first[s], self.first[s + 1], upper - lower
            if begin < end:
                sizes[begin:end] = self.model.block_bytes or total
                sizes[end - 1] = total - int(sizes[begin : end - 1].sum())
        return sizes

    def _flags(self, tensors: set[int]) -> Bytes8:
        flags = np.zeros(self.count_blocks, np.uint8)
        for tensor in tensors:
            for s in self.of_tensor.get(tensor, ()):
                flags[self.first[s] : self.first[s + 1]] = 1
        return flags

    @cached_property
    def kept(self) -> Bytes8:
        """Blocks whose content must be off-chip at the end."""
        return self._flags(set(self.graph.outputs))

    @cached_property
    def start(self) -> Bytes8:
        """Blocks of what nothing in the graph makes."""
        return self._flags({t for t, _, _ in self.parts if t >= 0 and self.graph.producer[t] < 0})

    @property
    def home(self) -> Bytes8:
        """Blocks whose content is off-chip at the start."""
        if self.model.inputs is InputPlace.ON_CHIP:
            return np.zeros(self.count_blocks, np.uint8)
        return self.start

    @cached_property
    def pieces(self) -> tuple[OpAccesses, ...]:
        """What each op accesses; it does not depend on the order of the ops."""
        return tuple(self._piece(op) for op in range(len(self.graph.ops)))

    @cached_property
    def preamble(self) -> OpAccesses:
        """The writes that bring in inputs which start on-chip, before the first op."""
        wanted = self.model.inputs is InputPlace.ON_CHIP
        block = np.flatnonzero(self.start if wanted else 0 * self.start).astype(np.int32)
        ends = np.arange(1, len(block) + 1, dtype=np.int64)
        return OpAccesses(block, np.full(len(block), WRITE, np.uint8), ends)

    def _piece(self, op: int) -> OpAccesses:
        node = self.graph.ops[op]
        read = [] if op in self.graph.constant_ops else self._known(node.inputs)
        made = [] if op in self.graph.constant_ops else self._written(op)
        if node.view_of is not None:
            shown = self._known((node.view_of,))
            read = [s for s in read if s not in shown]
            if op not in self._limits:
                made = shown if read else []  # an op that adds to it, or a view that does nothing
        kinds = {s: WRITE if self._first_writer.get(s) == op else MODIFY for s in made}
        scratchpad = self.model.memory is Memory.SCRATCHPAD
        work = self.of_workspace.get(op)
        spans = [(self.first[s], self.first[s + 1], READ) for s in read]
        spans += [(self.first[s], self.first[s + 1], kind) for s, kind in kinds.items()]
        around = [] if work is None else list(range(self.first[work], self.first[work + 1]))
        runs = scratchpad and op not in self.graph.constant_ops
        return piece_of(spans, around, scratchpad, node.workspace_bytes if runs else 0)

    @cached_property
    def _limits(self) -> dict[int, tuple[int, int]]:
        return {op: (lower, upper) for op, lower, upper in self.subject.writes}

    @cached_property
    def _first_writer(self) -> dict[int, int]:
        """The op that brings each storage into being; others that write it change it."""
        found: dict[int, int] = {}
        for op in range(len(self.graph.ops)):
            if op not in self.graph.constant_ops:
                for s in self._written(op):
                    if self.graph.producer[self.parts[s][0]] >= 0:
                        found.setdefault(s, op)
        return found

    def _written(self, op: int) -> list[int]:
        """The storages that an op writes: all of its outputs, or the part that it says."""
        made = self._known(self.graph.ops[op].outputs)
        if op not in self._limits:
            return made
        lower, upper = self._limits[op]
        return [s for s in made if lower <= self.parts[s][1] and self.parts[s][2] <= upper]

    @cached_property
    def of_workspace(self) -> dict[int, int]:
        """The storage of each op's workspace, where it has blocks of its own."""
        return {-1 - t: s for s, (t, _, _) in enumerate(self.parts) if t < 0}

    def _known(self, tensors: tuple[int, ...]) -> list[int]:
        return list(dict.fromkeys(s for t in tensors for s in self.of_tensor.get(t, ())))


def storages_of(subject: Subject | Graph, model: Model) -> Storages:
    """Return the storages: activations, the caller's tensors and, in a cache, workspaces.

    Raises :class:`InputError` where there would be too many blocks.
    """
    if isinstance(subject, Graph):
        subject = Subject(subject)
    graph = _with_callers(subject.graph)
    used = {graph.storage[t] for op in graph.ops for t in (*op.inputs, *op.outputs)}
    used |= {graph.storage[t] for t in graph.outputs}
    cuts: dict[int, set[int]] = {}
    for op, lower, upper in subject.writes:
        cuts.setdefault(graph.storage[graph.ops[op].outputs[0]], set()).update((lower, upper))
    parts: list[Part] = []
    for tensor in sorted(t for t in used if graph.in_profile[t]):
        edges = sorted({0, graph.tensors[tensor].size_bytes} | cuts.get(tensor, set()))
        parts += [(tensor, a, b) for a, b in pairwise(edges)]
    if model.memory is Memory.CACHE:
        parts += [
            (-1 - i, 0, op.workspace_bytes)
            for i, op in enumerate(graph.ops)
            if op.workspace_bytes and i not in graph.constant_ops
        ]
    first = list(accumulate((model.blocks(b - a) for _, a, b in parts), initial=0))
    if first[-1] > MAX_BLOCKS:
        raise InputError(
            f"{graph.name}: {first[-1]:,} blocks of {model.block_bytes} bytes; "
            f"take larger ones, up to {MAX_BLOCKS:,} are possible"
        )
    return Storages(replace(subject, graph=graph), model, tuple(parts), tuple(first))


def _with_callers(graph: Graph) -> Graph:
    """The graph with tensors in the caller's memory as inputs and outputs of its own."""
    if not any(t.role is Role.EXTERNAL for t in graph.tensors):
        return graph
    made = [
        t
        for t, tensor in enumerate(graph.tensors)
        if tensor.role is Role.EXTERNAL and graph.producer[t] >= 0
    ]
    given = [
        t
        for t, tensor in enumerate(graph.tensors)
        if tensor.role is Role.EXTERNAL and graph.producer[t] < 0
    ]
    return graph.replace(
        tensors=tuple(
            replace(t, role=Role.ACTIVATION) if t.role is Role.EXTERNAL else t
            for t in graph.tensors
        ),
        inputs=tuple(dict.fromkeys([*graph.inputs, *given])),
        outputs=tuple(dict.fromkeys([*graph.outputs, *made])),
    )


def _rows(spans: list[tuple[int, int, int]]) -> Iterator[tuple[Longs, Longs, Longs]]:
    """For each operand the step, the operand's rank and the number of each block."""
    steps = max((end - begin for begin, end, _ in spans), default=0)
    for rank, (begin, end, _) in enumerate(spans):
        count = end - begin
        # block b of n is accessed in the step in which b / n of the longest operand is reached
        step = np.arange(count, dtype=np.int64) * steps // max(count, 1)
        yield step, np.full(count, rank, np.int64), np.arange(begin, end, dtype=np.int64)


def piece_of(
    spans: list[tuple[int, int, int]], around: list[int], scratchpad: bool, reserve: int
) -> OpAccesses:
    """Scratch is written; all operands are streamed in lockstep; scratch is read.

    ``spans``: first block, last + 1 and kind of each operand.
    """
    begins = tuple(begin for begin, _, _ in spans)
    counts, kinds = tuple(e - b for b, e, _ in spans), tuple(kind for _, _, kind in spans)
    short = sum(counts) + len(around) <= SHORT_BLOCKS
    made = (_known_piece if short else _piece)(counts, kinds, len(around), scratchpad)
    bases = np.array((*begins, around[0] if around else 0), np.int32)
    return OpAccesses(made.block + bases[made.operand], made.kind, made.group_end, reserve)


@dataclass(frozen=True)
class _Pattern:
    """A piece but for where its operands begin; scratch comes after the operands."""

    operand: Longs
    block: Ints
    kind: Bytes8
    group_end: Longs


def _piece(
    counts: tuple[int, ...], kinds: tuple[int, ...], scratch: int, scratchpad: bool
) -> _Pattern:
    spans = [(0, count, kind) for count, kind in zip(counts, kinds, strict=True)]
    rows = list(_rows(spans))
    step = np.concatenate([r[0] for r in rows]) if rows else np.zeros(0, np.int64)
    rank = np.concatenate([r[1] for r in rows]) if rows else np.zeros(0, np.int64)
    block = np.concatenate([r[2] for r in rows]) if rows else np.zeros(0, np.int64)
    order = np.lexsort((block, rank, step))
    kind = np.array(kinds or [READ], np.uint8)[rank[order]]
    middle, rank, step = block[order], rank[order], step[order]
    work = np.arange(scratch)
    around = np.full(scratch, len(counts))
    whole = np.concatenate([work, middle, work]).astype(np.int32)
    if scratchpad:
        ends = np.append(np.flatnonzero(np.diff(step)) + 1, len(step)) if len(step) else step
    else:
        ends = np.arange(1, len(whole) + 1)
    return _Pattern(
        np.concatenate([around, rank, around]),
        whole,
        np.concatenate(
            [np.full(len(work), WRITE, np.uint8), kind, np.full(len(work), READ, np.uint8)]
        ),
        ends.astype(np.int64),
    )


_known_piece = lru_cache(maxsize=4096)(_piece)
