"""The data that moves: the storages of a graph, and the accesses of each op to them.

A storage is a tensor with its views: one piece of data, read as a unit. If ops write parts of it
(see ``Subject``), every part is a storage. Tensors in the caller's memory are storages too: they
start or end off-chip.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph, Role
from tvm_serenity.graph.arrays import Pairs, ints
from tvm_serenity.offchip.accesses import (
    MODIFY,
    READ,
    WRITE,
    Accesses,
    Bytes8,
    Ints,
    Longs,
    Spans,
    runs,
    streamed,
    sums,
)
from tvm_serenity.offchip.model import MAX_BLOCKS, InputPlace, Memory, Model


@dataclass(frozen=True)
class Subject:
    """A graph, and the part of its output's storage that an op writes, if not all of it.

    ``writes`` holds (op, first byte, last byte + 1). ``passes`` holds (op, tensor, how often the op
    goes over its bytes) of tensors that own their storage; once where nothing is said.
    """

    graph: Graph
    writes: tuple[tuple[int, int, int], ...] = ()
    passes: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True, eq=False)
class Storages:
    """The storages of a subject, split into blocks under ``model``.

    Storage s is bytes ``lower[s]`` to ``upper[s] - 1`` of ``tensor[s]``, ascending, or of op u's
    workspace if the tensor is ``-1 - u``; workspaces come last. It has the blocks ``first[s]`` to
    ``first[s + 1] - 1``; the last one may be shorter.
    """

    subject: Subject
    model: Model
    tensor: Longs
    lower: Longs
    upper: Longs
    first: Longs

    @property
    def graph(self) -> Graph:
        """The subject's graph."""
        return self.subject.graph

    @cached_property
    def of_root(self) -> tuple[Longs, Longs]:
        """For each tensor, the first storage of its own bytes, and the number of them."""
        count = np.zeros(len(self.graph.tensors), dtype=np.int64)
        np.add.at(count, self.tensor[self.tensor >= 0], 1)
        return sums(count)[:-1], count

    def of_tensor(self, tensor: int) -> range:
        """Return the storages of a tensor: those of the tensor that owns its storage."""
        first, count = (int(found[self.graph.root[tensor]]) for found in self.of_root)
        return range(first, first + count)

    @property
    def count_blocks(self) -> int:
        """The number of blocks."""
        return int(self.first[-1])

    @cached_property
    def block_tensor(self) -> Longs:
        """The tensor that owns the storage of each block."""
        return np.repeat(self.tensor, np.diff(self.first))

    @cached_property
    def size(self) -> Longs:
        """Bytes in each block."""
        count, total = np.diff(self.first), self.upper - self.lower
        full = total if self.model.block_bytes is None else self.model.block_bytes + 0 * total
        sizes = np.repeat(full, count)
        some = count > 0
        sizes[self.first[1:][some] - 1] = (total - (count - 1) * full)[some]
        return sizes

    @cached_property
    def kept(self) -> Bytes8:
        """Blocks whose content must be off-chip at the end."""
        returned = np.zeros(len(self.graph.tensors) + 1, np.uint8)
        returned[self.graph.root[ints(self.graph.outputs)]] = 1
        return self._blockwise(returned[np.maximum(self.tensor, -1)])

    @cached_property
    def start(self) -> Bytes8:
        """Blocks of tensors without a producer in the graph."""
        return self._blockwise(self._given)

    @cached_property
    def _given(self) -> Bytes8:
        """Storages of tensors without a producer in the graph."""
        given = np.append(self.graph.arrays.maker < 0, False)
        return given[np.maximum(self.tensor, -1)].astype(np.uint8)

    def _blockwise(self, flags: Bytes8) -> Bytes8:
        return np.repeat(flags, np.diff(self.first))

    @property
    def home(self) -> Bytes8:
        """Blocks whose content is off-chip at the start."""
        if self.model.inputs is InputPlace.ON_CHIP:
            return np.zeros(self.count_blocks, np.uint8)
        return self.start

    @cached_property
    def preamble(self) -> Ints:
        """The blocks written before the first op: inputs that start on-chip."""
        wanted = self.model.inputs is InputPlace.ON_CHIP
        return np.flatnonzero(self.start if wanted else 0 * self.start).astype(np.int32)

    @cached_property
    def accesses(self) -> Accesses:
        """The accesses of each op, which do not depend on the order of the ops."""
        count = len(self.graph.ops)
        scratchpad = self.model.memory is Memory.SCRATCHPAD
        reserve = self.graph.arrays.workspace.copy() if scratchpad else np.zeros(count, np.int64)
        reserve[list(self.graph.constant_ops)] = 0
        work = np.flatnonzero(self.tensor < 0)
        scratch = self._spans(-1 - self.tensor[work], work, np.full(len(work), WRITE, np.uint8))
        return streamed(count, self._operands(), scratch, scratchpad, reserve)

    @property
    def count_ops(self) -> int:
        """The number of ops with accesses; the arrival of inputs counts as one."""
        return int(np.count_nonzero(np.diff(self.accesses.begin))) + bool(len(self.preamble))

    def _spans(self, op: Longs, storage: Longs, kind: Bytes8) -> Spans:
        return Spans(op, self.first[storage], np.diff(self.first)[storage], kind)

    def _operands(self) -> Spans:
        """Return the storages that ops read, each once, then those that they write."""
        read, written = self._known(self.graph.arrays.read), self._written()
        first_writer = np.full(len(self.tensor), len(self.graph.ops))
        own = self._given[written.tensor] == 0
        np.minimum.at(first_writer, written.tensor[own], written.op[own])
        read, written = self._through_views(read, written)
        op = np.concatenate([read.op, written.op])
        place = np.argsort(op, kind="stable")
        writes = np.where(first_writer[written.tensor] == written.op, WRITE, MODIFY)
        kind = np.concatenate([np.full(len(read.op), READ), writes]).astype(np.uint8)
        storage = np.concatenate([read.tensor, written.tensor])
        return self._spans(op[place], storage[place], kind[place])

    def _written(self) -> Pairs:
        """Return the storages that ops write: all of their outputs, or the declared part."""
        written = self._known(self.graph.arrays.made)
        if not self.subject.writes:
            return written
        least = np.zeros(len(self.graph.ops), dtype=np.int64)
        most = np.full(len(self.graph.ops), np.iinfo(np.int64).max)
        for op, lower, upper in self.subject.writes:
            least[op], most[op] = lower, upper
        inside = (least[written.op] <= self.lower[written.tensor]) & (
            self.upper[written.tensor] <= most[written.op]
        )
        return Pairs(written.op[inside], written.tensor[inside])

    def _through_views(self, read: Pairs, made: Pairs) -> tuple[Pairs, Pairs]:
        """Return the accesses without views; a view op with other inputs accumulates into its
        source.
        """
        if not any(op.view_of is not None for op in self.graph.sharing):
            return read, made
        ops = [i for i, op in enumerate(self.graph.ops) if op.view_of is not None]
        sources = [self.graph.ops[i].view_of or 0 for i in ops]
        shown, count = self._known(Pairs(ints(ops), ints(sources))), len(self.tensor)
        separate = ~np.isin(read.op * count + read.tensor, shown.op * count + shown.tensor)
        read = Pairs(read.op[separate], read.tensor[separate])
        unsplit = np.setdiff1d(ints(ops), ints(op for op, _, _ in self.subject.writes))
        adding = np.isin(shown.op, np.intersect1d(unsplit, read.op))
        other = ~np.isin(made.op, unsplit)
        op = np.concatenate([made.op[other], shown.op[adding]])
        tensor = np.concatenate([made.tensor[other], shown.tensor[adding]])
        place = np.argsort(op, kind="stable")
        return read, Pairs(op[place], tensor[place])

    def _known(self, pairs: Pairs) -> Pairs:
        """Return the storages (in place of tensors) that ops access, in their order, each once."""
        first, count = self.of_root
        root = self.graph.root[pairs.tensor]
        op, several = pairs.op, count[root]
        if several.min(initial=1) < 1:
            some = several > 0
            op, root, several = op[some], root[some], several[some]
        storage = first[root]
        if several.max(initial=1) > 1:
            op, storage = np.repeat(op, several), runs(storage, several)
        key = op * max(len(self.tensor), 1) + storage
        kept = np.ones(len(op), dtype=np.bool_)
        if (np.diff(key) <= 0).any():
            place = np.argsort(key, kind="stable")
            kept[place[1:][np.diff(key[place]) == 0]] = False
        elif not self.graph.constant_ops:
            return Pairs(op, storage)
        if self.graph.constant_ops:
            kept &= ~np.isin(op, ints(self.graph.constant_ops))
        return Pairs(op[kept], storage[kept])


def storages_of(subject: Subject | Graph, model: Model) -> Storages:
    """Return the storages: activations, the caller's tensors and, in a cache, workspaces.

    Raises :class:`InputError` if there are too many blocks.
    """
    if isinstance(subject, Graph):
        subject = Subject(subject)
    graph = _with_callers(subject.graph)
    subject = replace(subject, graph=graph)
    tensor, lower, upper = _parts(subject)
    if model.memory is Memory.CACHE:
        needed = graph.arrays.workspace.copy()
        needed[list(graph.constant_ops)] = 0
        ops = np.flatnonzero(needed)
        tensor = np.concatenate([tensor, -1 - ops])
        lower = np.concatenate([lower, 0 * ops])
        upper = np.concatenate([upper, needed[ops]])
    first = sums(model.blocks(upper - lower))
    if first[-1] > MAX_BLOCKS:
        raise InputError(
            f"{graph.name}: {first[-1]:,} blocks of {model.block_bytes} bytes are too many; use "
            f"larger blocks, at most {MAX_BLOCKS:,} of them"
        )
    return Storages(subject, model, tensor, lower, upper, first)


def _parts(subject: Subject) -> tuple[Longs, Longs, Longs]:
    """Return the tensors that ops access or the graph returns, split where ops write parts."""
    graph = subject.graph
    used = np.zeros(len(graph.tensors), dtype=np.bool_)
    for accessed in (graph.arrays.read.tensor, graph.arrays.made.tensor, ints(graph.outputs)):
        used[graph.root[accessed]] = True
    used &= graph.counted
    cuts: dict[int, set[int]] = {}
    for op, lower, upper in subject.writes:
        root = graph.storage[graph.ops[op].outputs[0]]
        cuts.setdefault(root, {0, graph.tensors[root].size_bytes}).update((lower, upper))
    parts = [(t, a, b) for t, edges in cuts.items() if used[t] for a, b in pairwise(sorted(edges))]
    used[list(cuts)] = False
    used &= graph.arrays.size > 0
    unsplit = np.flatnonzero(used)
    table = np.array(parts, dtype=np.int64).reshape(-1, 3).T
    tensor = np.concatenate([unsplit, table[0]])
    lower_of = np.concatenate([0 * unsplit, table[1]])
    upper_of = np.concatenate([graph.arrays.size[unsplit], table[2]])
    place = np.argsort(tensor, kind="stable")
    return tensor[place], lower_of[place], upper_of[place]


def _with_callers(graph: Graph) -> Graph:
    """Return the graph with tensors in the caller's memory as inputs and outputs of its own."""
    external = np.flatnonzero(graph.with_role(Role.EXTERNAL))
    if not len(external):
        return graph
    made = graph.arrays.maker[external] >= 0
    return graph.replace(
        tensors=tuple(
            replace(t, role=Role.ACTIVATION) if t.role is Role.EXTERNAL else t
            for t in graph.tensors
        ),
        inputs=tuple(dict.fromkeys([*graph.inputs, *external[~made].tolist()])),
        outputs=tuple(dict.fromkeys([*graph.outputs, *external[made].tolist()])),
    )
