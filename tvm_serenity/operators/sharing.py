"""Changes to the memory model of a graph, by its operators; none changes its results.

Each function takes a :class:`Reduced` and returns another. No-op copies become views
(``alias_copies``), concatenations disappear (``fold_concat``), elementwise operators overwrite
dying inputs of the same shape (``in_place``).
"""

from dataclasses import replace

from tvm_serenity.graph import Graph, Op
from tvm_serenity.graph.reduced import Reduced, compact
from tvm_serenity.operators import MemoryUse, operator


def _may(op: Op, use: MemoryUse) -> bool:
    """Return whether operators of this kind may use memory like ``use``."""
    return operator(op.kind).storage.use is use


def alias_copies(reduced: Reduced) -> Reduced:
    """Return the graph with each no-op copy as a view of its source."""

    def view(graph: Graph, op: Op) -> Op:
        if not _may(op, MemoryUse.COPY) or len(op.outputs) != 1 or op.view_of is not None:
            return op
        sources = [t for t in op.inputs if graph.in_profile[t]]
        made = graph.tensors[op.outputs[0]]
        if len(sources) != 1 or graph.tensors[sources[0]].size_bytes != made.size_bytes:
            return op
        return replace(op, view_of=sources[0], in_place=(), over=(), over_bytes=0)

    graph = reduced.graph
    return replace(reduced, graph=graph.replace(ops=tuple(view(graph, op) for op in graph.ops)))


def in_place(reduced: Reduced) -> Reduced:
    """Return the graph with elementwise operators in place of dying inputs of the same shape."""

    def permit(graph: Graph, op: Op) -> Op:
        if not _may(op, MemoryUse.ELEMENTWISE) or len(op.outputs) != 1 or op.view_of is not None:
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
    """Return the graph without each concatenation whose consumers can read its inputs.

    Concatenations stay if they are graph outputs, have no readers, have views, or have constant
    inputs.
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
    folded = compact(graph.name, graph.tensors, ops, graph.inputs, graph.outputs)
    return Reduced(folded, reduced.original, tuple(kept))


def _can_fold(graph: Graph, index: int) -> bool:
    op = graph.ops[index]
    if (
        not _may(op, MemoryUse.CONCAT)
        or len(op.outputs) != 1
        or not graph.in_profile[op.outputs[0]]
    ):
        return False
    made = op.outputs[0]
    readers = graph.consumers[made]
    return (
        made not in graph.returned
        and bool(readers)
        and all(graph.ops[r].view_of is None for r in readers)
    )
