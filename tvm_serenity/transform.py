"""Explicit changes to what a graph means in memory; none changes what it computes.

Each takes a :class:`Reduced` and returns another: the graph that is scheduled, beside the graph
of the file it came from. ``Reduced.expand`` turns an order of the one into an order of the other.

* ``cut``: some consecutive ops as a network of their own.
* ``alias_copies``: no-op copies (reshape, one-way split, identity) are views, not buffers.
* ``fold_concat``: a concat is no op of its own; its consumers read its inputs.
* ``in_place``: elementwise ops may write over an input of equal size that dies there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph, Op, Role, Tensor, complete_order


def _may(op: Op, use: str) -> bool:
    """Whether the memory of an operator of this kind may look like ``use``, a ``MemoryUse``."""
    from tvm_serenity.operators import MemoryUse, operator  # slow to load, for who asks alone

    return operator(op.kind).storage.use is MemoryUse[use]


@dataclass(frozen=True)
class Reduced:
    """``graph`` is scheduled in place of ``original``; ``ops[i]`` is op i's index there."""

    graph: Graph
    original: Graph
    ops: tuple[int, ...]

    @property
    def nodes(self) -> int:
        """The number of ops that are really run: views are not."""
        return len(self.graph.ops) - sum(op.view_of is not None for op in self.graph.sharing)

    def expand(self, order: Sequence[int]) -> tuple[int, ...]:
        """Return the order of the original's ops in which ``order`` runs ours."""
        if self.graph is self.original:
            return tuple(order)
        return complete_order(self.original, [self.ops[i] for i in order])


def whole(graph: Graph) -> Reduced:
    """Return ``graph`` unchanged."""
    return Reduced(graph, graph, tuple(range(len(graph.ops))))


def cut(graph: Graph, first: int, last: int) -> Graph:
    """Return ops ``first`` to ``last`` (both included) as a network of their own.

    Its inputs are the tensors that come from outside, its outputs those that are used outside.
    """
    if not 0 <= first <= last < len(graph.ops):
        raise InputError(
            f"{graph.name}: slice {first}:{last} is not within its ops 0:{len(graph.ops) - 1}"
        )
    ops = graph.ops[first : last + 1]
    made = {t for op in ops for t in op.outputs}
    read = dict.fromkeys(t for op in ops for t in op.inputs)
    inside = range(first, last + 1)
    weights = {t for op in graph.constant_ops for t in graph.ops[op].outputs} - made
    known, given = made | weights, set(graph.inputs)
    inputs = [t for t in read if t not in known and (graph.producer[t] >= 0 or t in given)]
    outputs = [
        t
        for op in ops
        for t in op.outputs
        if t in graph.returned or any(c not in inside for c in graph.consumers[t])
    ]
    tensors = tuple(
        replace(tensor, role=Role.CONSTANT) if t in weights else tensor
        for t, tensor in enumerate(graph.tensors)
    )
    return _compact(graph.name, tensors, ops, inputs, outputs)


def alias_copies(reduced: Reduced) -> Reduced:
    """Make every no-op copy a view of what it copies."""

    def view(graph: Graph, op: Op) -> Op:
        if not _may(op, "COPY") or len(op.outputs) != 1 or op.view_of is not None:
            return op
        sources = [t for t in op.inputs if graph.in_profile[t]]
        made = graph.tensors[op.outputs[0]]
        if len(sources) != 1 or graph.tensors[sources[0]].size_bytes != made.size_bytes:
            return op
        return replace(op, view_of=sources[0], in_place=(), over=(), over_bytes=0)

    graph = reduced.graph
    return replace(reduced, graph=graph.replace(ops=tuple(view(graph, op) for op in graph.ops)))


def in_place(reduced: Reduced) -> Reduced:
    """Let elementwise ops write over any input of the output's shape that dies there."""

    def permit(graph: Graph, op: Op) -> Op:
        if not _may(op, "ELEMENTWISE") or len(op.outputs) != 1 or op.view_of is not None:
            return op
        made = graph.tensors[op.outputs[0]]
        same = [
            t
            for t in dict.fromkeys(op.inputs)
            if graph.in_profile[t]
            and graph.tensors[t].size_bytes == made.size_bytes
            and graph.tensors[t].shape == made.shape
            and graph.tensors[graph.storage[t]].size_bytes == made.size_bytes
        ]
        return replace(op, in_place=tuple(same))

    graph = reduced.graph
    return replace(reduced, graph=graph.replace(ops=tuple(permit(graph, op) for op in graph.ops)))


def fold_concat(reduced: Reduced) -> Reduced:
    """Remove every concat whose consumers can read its inputs instead.

    Kept: a concat that is a graph output, that nothing reads, that a view shows, or whose
    inputs are constants.
    """
    graph = reduced.graph
    pieces: dict[int, tuple[int, ...]] = {}
    ops, kept = [], []
    for index, op in enumerate(graph.ops):
        if op.view_of is None and op.inputs:
            inputs = tuple(p for t in op.inputs for p in pieces.get(t, (t,)))
            op = replace(
                op, inputs=inputs, in_place=tuple(t for t in op.in_place if t not in pieces)
            )
        if _can_fold(graph, index):
            pieces[op.outputs[0]] = op.inputs
        else:
            ops.append(op)
            kept.append(reduced.ops[index])
    folded = _compact(graph.name, graph.tensors, ops, graph.inputs, graph.outputs)
    return Reduced(folded, reduced.original, tuple(kept))


def _can_fold(graph: Graph, index: int) -> bool:
    op = graph.ops[index]
    if not _may(op, "CONCAT") or len(op.outputs) != 1 or not graph.in_profile[op.outputs[0]]:
        return False
    made = op.outputs[0]
    readers = graph.consumers[made]
    return (
        made not in graph.returned
        and bool(readers)
        and all(graph.ops[r].view_of is None for r in readers)
    )


def _compact(
    name: str,
    tensors: Sequence[Tensor],
    ops: Sequence[Op],
    inputs: Sequence[int],
    outputs: Sequence[int],
) -> Graph:
    """Return the graph of these parts without the tensors that nothing names."""
    used = {t for op in ops for t in (*op.inputs, *op.outputs)} | {*inputs, *outputs}
    number = {old: new for new, old in enumerate(sorted(used))}

    def renumber(old: Sequence[int]) -> tuple[int, ...]:
        return tuple(number[t] for t in old)

    renumbered = tuple(
        replace(
            op,
            inputs=renumber(op.inputs),
            outputs=renumber(op.outputs),
            in_place=renumber(op.in_place),
            over=renumber(op.over),
            view_of=None if op.view_of is None else number[op.view_of],
        )
        for op in ops
    )
    kept = tuple(tensors[t] for t in sorted(used))
    return Graph(name, kept, renumbered, renumber(inputs), renumber(outputs))
