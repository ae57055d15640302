"""The instance that every order search solves: a graph reduced to what decides its peak.

Constants, and the ops that make them, are gone; views have become further readers of the storage
they show. With S the set of ops that have run (a downset of the precedence order):

* storage t is live in S iff it is there from the start or its producer is in S, and it is kept to
  the end or some consumer is not in S. ``f(S)`` is the sum of the live sizes: submodular on
  downsets (``docs/search.md``).
* running u from S needs ``f(S) + alloc(u) + workspace(u) - credit(S, u)`` bytes, where ``alloc``
  is the sum of the storages u produces and ``credit`` is ``takeover[u]`` if one of
  ``in_place[u]`` dies at u (all its other consumers are in S and it is not kept), else 0.

The peak of an order is the largest such need, and at least ``f`` of the empty set.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tvm_serenity.graph import Graph


@dataclass(frozen=True)
class Problem:
    """Ops 0..n-1 in a valid order, storages with sizes in bytes; ``ops`` are the graph's indices.

    ``producer[t]`` is -1 where the storage is live from the start. ``consumers[t]`` are ascending.
    ``in_place[u]``: storages that the one u produces first may take over, each as large as that;
    or, where ``over_bytes[u]`` is not 0, lie over in part, which saves so many bytes at most.
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
        """For each op, the storages it produces; the first is the one an in-place op places."""
        outputs: list[list[int]] = [[] for _ in self.workspace]
        for storage, op in enumerate(self.producer):
            if op >= 0:
                outputs[op].append(storage)
        return tuple(map(tuple, outputs))

    @cached_property
    def inputs(self) -> tuple[tuple[int, ...], ...]:
        """For each op, the storages it reads."""
        inputs: list[list[int]] = [[] for _ in self.workspace]
        for storage, ops in enumerate(self.consumers):
            for op in ops:
                inputs[op].append(storage)
        return tuple(map(tuple, inputs))

    @cached_property
    def alloc(self) -> tuple[int, ...]:
        """For each op, the bytes of the storages it produces."""
        return tuple(sum(self.sizes[t] for t in outputs) for outputs in self.outputs)

    @cached_property
    def takeover(self) -> tuple[int, ...]:
        """For each op, the bytes it saves while it runs if one of ``in_place`` dies there."""
        over = self.over_bytes or (0,) * self.count
        return tuple(
            (over[op] or self.sizes[self.outputs[op][0]]) if storages else 0
            for op, storages in enumerate(self.in_place)
        )

    @cached_property
    def start_bytes(self) -> int:
        """Bytes of f on the empty set: what is live before the first op."""
        return sum(
            size
            for t, size in enumerate(self.sizes)
            if self.producer[t] < 0 and (self.kept[t] or self.consumers[t])
        )

    @cached_property
    def end_bytes(self) -> int:
        """Bytes of f on the full set: what is live after the last op."""
        return sum(size for size, kept in zip(self.sizes, self.kept, strict=True) if kept)


def problem_of(graph: Graph) -> Problem:
    """The order search's instance of ``graph``."""
    ops = [i for i in range(len(graph.ops)) if i not in graph.constant_ops]
    position = {op: i for i, op in enumerate(ops)}
    roots = sorted(
        {graph.storage[t] for t in range(len(graph.tensors)) if graph.in_profile[t]},
        # an op's output 0 comes before its other outputs, whatever their tensor indices
        key=lambda t: (graph.producer[t], _output_rank(graph, t)),
    )
    number = {t: i for i, t in enumerate(roots)}
    consumers: list[set[int]] = [set() for _ in roots]
    kept = [False] * len(roots)
    for tensor in range(len(graph.tensors)):
        if graph.in_profile[tensor]:
            storage = number[graph.storage[tensor]]
            consumers[storage].update(position[op] for op in graph.consumers[tensor])
    for tensor in graph.outputs:
        if graph.in_profile[tensor]:
            kept[number[graph.storage[tensor]]] = True
    return Problem(
        sizes=tuple(graph.tensors[t].size_bytes for t in roots),
        producer=tuple(
            position[graph.producer[t]] if graph.producer[t] >= 0 else -1 for t in roots
        ),
        consumers=tuple(tuple(sorted(c)) for c in consumers),
        kept=tuple(kept),
        workspace=tuple(graph.ops[op].workspace_bytes for op in ops),
        in_place=tuple(_may_take_over(graph, op, number) for op in ops),
        predecessors=tuple(
            tuple(position[p] for p in graph.predecessors[op] if p in position) for op in ops
        ),
        ops=tuple(ops),
        over_bytes=tuple(graph.ops[op].over_bytes for op in ops),
    )


def peak_of(problem: Problem, order: Sequence[int]) -> int:
    """The peak in bytes of an order of the problem's own op numbers (not checked)."""
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


def _may_take_over(graph: Graph, op: int, number: dict[int, int]) -> tuple[int, ...]:
    """What the op's output 0 may take over or lie over; none if that is not counted itself."""
    found = graph.ops[op]
    taken = found.in_place or found.over
    if not taken or not graph.in_profile[found.outputs[0]]:
        return ()
    return tuple(dict.fromkeys(number[graph.storage[t]] for t in taken if graph.in_profile[t]))


def _output_rank(graph: Graph, tensor: int) -> int:
    op = graph.producer[tensor]
    return graph.ops[op].outputs.index(tensor) if op >= 0 else tensor
