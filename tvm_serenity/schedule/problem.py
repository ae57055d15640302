"""The problem that every order search solves: a graph reduced to what the peak depends on.

Constants and the ops that compute them are left out. The readers of a view are readers of the
storage that it shows. Let S be the set of ops that have run (a downset of the precedence order):

* storage t is live in S iff it is live from the start or its producer is in S, and it is kept to
  the end or some consumer is not in S. ``f(S)`` is the sum of the live sizes: submodular on
  downsets (``docs/search.md``).
* running u from S needs ``f(S) + alloc(u) + workspace(u) - credit(S, u)`` bytes, where ``alloc``
  is the sum of the storages that u produces and ``credit`` is ``takeover[u]`` if one of
  ``in_place[u]`` dies at u (all its other consumers are in S and it is not kept), else 0.

The peak of an order is the largest such need, and at least ``f`` of the empty set.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tvm_serenity.graph import Graph
from tvm_serenity.graph.arrays import Ints, grouped, ints, turned


@dataclass(frozen=True)
class Problem:
    """Ops 0 to n-1 in a valid order, and storages with sizes in bytes.

    ``ops``: the graph's index of each op. ``producer[t]``: -1 if storage t is live from the start.
    ``consumers[t]``: ascending. ``kept[t]``: whether t is live to the end. ``in_place[u]``: the
    storages that the first output of op u may take over, which have its size. If ``over_bytes[u]``
    is not 0, the output may instead overlap one of them, which saves at most ``over_bytes[u]``
    bytes.
    """

    sizes: tuple[int, ...]
    producer: tuple[int, ...]
    consumers: tuple[tuple[int, ...], ...]
    kept: tuple[bool, ...]
    workspace: tuple[int, ...]
    in_place: tuple[tuple[int, ...], ...]
    predecessors: tuple[tuple[int, ...], ...]
    ops: tuple[int, ...]
    over_bytes: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """The number of ops to order."""
        return len(self.workspace)

    @cached_property
    def outputs(self) -> tuple[tuple[int, ...], ...]:
        """For each op, the storages that it produces; only the first may be written in place."""
        return turned([() if op < 0 else (op,) for op in self.producer], self.count)

    @cached_property
    def inputs(self) -> tuple[tuple[int, ...], ...]:
        """For each op, the storages that it reads."""
        return turned(self.consumers, self.count)

    @cached_property
    def alloc(self) -> tuple[int, ...]:
        """For each op, the bytes of the storages that it produces."""
        maker = ints(self.producer, len(self.producer))
        bytes_made = np.zeros(self.count, dtype=np.int64)
        np.add.at(bytes_made, maker[maker >= 0], ints(self.sizes, len(self.sizes))[maker >= 0])
        return tuple(bytes_made.tolist())

    @cached_property
    def takeover(self) -> tuple[int, ...]:
        """For each op, the bytes that it saves if a storage of ``in_place`` dies at it."""
        overlap = self.over_bytes or (0,) * self.count
        return tuple(
            (overlap[op] or self.sizes[self.outputs[op][0]]) if storages else 0
            for op, storages in enumerate(self.in_place)
        )

    @cached_property
    def start_bytes(self) -> int:
        """The bytes live before the first op: f of the empty set."""
        return sum(
            size
            for t, size in enumerate(self.sizes)
            if self.producer[t] < 0 and (self.kept[t] or self.consumers[t])
        )

    @cached_property
    def end_bytes(self) -> int:
        """The bytes live after the last op: f of the full set."""
        return sum(size for size, kept in zip(self.sizes, self.kept, strict=True) if kept)


def problem_of(graph: Graph) -> Problem:
    """Return the problem of ordering ``graph``."""
    arrays, count = graph.arrays, len(graph.ops)
    ops = np.setdiff1d(np.arange(count), ints(graph.constant_ops), assume_unique=True)
    # The last entry stands for tensors without a producer.
    position = np.full(count + 1, -1, dtype=np.int64)
    position[ops] = np.arange(len(ops))
    maker, root = arrays.maker, graph.root
    roots = np.unique(root[graph.counted])
    roots = roots[np.lexsort((_output_ranks(graph)[roots], maker[roots]))]
    number = np.full(len(graph.tensors), -1, dtype=np.int64)
    number[roots] = np.arange(len(roots))
    read = graph.counted[arrays.read.tensor]
    storage, reader = number[root[arrays.read.tensor[read]]], position[arrays.read.op[read]]
    kept = np.zeros(len(roots), dtype=np.bool_)
    outputs = ints(graph.outputs)
    kept[number[root[outputs[graph.counted[outputs]]]]] = True
    in_place: list[tuple[int, ...]] = [()] * len(ops)
    overlap = np.zeros(len(ops), dtype=np.int64)
    if graph.sharing:
        for index, op in enumerate(ops.tolist()):
            in_place[index] = _takeover_candidates(graph, op, number)
            overlap[index] = graph.ops[op].over_bytes
    return Problem(
        sizes=tuple(arrays.size[roots].tolist()),
        producer=tuple(position[maker[roots]].tolist()),
        consumers=grouped(storage, reader, len(roots), len(ops)),
        kept=tuple(kept.tolist()),
        workspace=tuple(arrays.workspace[ops].tolist()),
        in_place=tuple(in_place),
        predecessors=_predecessors(graph, ops, position),
        ops=tuple(ops.tolist()),
        over_bytes=tuple(overlap.tolist()),
    )


def _predecessors(graph: Graph, ops: Ints, position: Ints) -> tuple[tuple[int, ...], ...]:
    if len(ops) == len(graph.ops):
        return graph.predecessors
    place: list[int] = position.tolist()
    return tuple(
        tuple(place[p] for p in graph.predecessors[op] if place[p] >= 0) for op in ops.tolist()
    )


def _output_ranks(graph: Graph) -> Ints:
    """Return a sort key for each tensor that puts an op's output 0 before its other outputs.

    For tensors without a producer, the key is the tensor's index.
    """
    made, rank = graph.arrays.made, np.arange(len(graph.tensors))
    own = graph.arrays.maker[made.tensor] == made.op
    first = np.searchsorted(made.op, made.op)
    rank[made.tensor[own][::-1]] = (np.arange(len(made.op)) - first)[own][::-1]
    return rank


def peak_of(problem: Problem, order: Sequence[int]) -> int:
    """Return the peak in bytes of ``order``, a valid order of the problem's op numbers."""
    waiting = [len(c) for c in problem.consumers]
    live, peak = problem.start_bytes, problem.start_bytes
    for op in order:
        credit = 0
        if any(waiting[t] == 1 and not problem.kept[t] for t in problem.in_place[op]):
            credit = problem.takeover[op]
        live += problem.alloc[op]
        peak = max(peak, live + problem.workspace[op] - credit)
        for t in problem.inputs[op]:
            waiting[t] -= 1
            if waiting[t] == 0 and not problem.kept[t]:
                live -= problem.sizes[t]
        for t in problem.outputs[op]:
            if not problem.consumers[t] and not problem.kept[t]:
                live -= problem.sizes[t]
    return peak


def _takeover_candidates(graph: Graph, op: int, number: Ints) -> tuple[int, ...]:
    """Return the storages that output 0 of ``op`` may take over or overlap.

    The result is empty if the output needs no activation memory.
    """
    known = graph.ops[op]
    taken = known.in_place or known.over
    if not taken or not graph.in_profile[known.outputs[0]]:
        return ()
    storages = (int(number[graph.storage[t]]) for t in taken if graph.in_profile[t])
    return tuple(dict.fromkeys(storages))
