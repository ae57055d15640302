"""Graphs that are scheduled instead of an original graph, and slices of a graph.

``Reduced.expand`` converts an order of the scheduled graph to an order of the original graph.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvm_serenity.errors import InputError
from tvm_serenity.graph.network import Graph
from tvm_serenity.graph.orders import complete_order
from tvm_serenity.graph.parts import Op, Role, Tensor


@dataclass(frozen=True)
class Reduced:
    """A graph that is scheduled instead of ``original``.

    ``ops[i]``: the index in ``original`` of op i of ``graph``.
    """

    graph: Graph
    original: Graph
    ops: tuple[int, ...]

    @property
    def nodes(self) -> int:
        """The number of ops that are not views."""
        return len(self.graph.ops) - sum(op.view_of is not None for op in self.graph.sharing)

    def expand(self, order: Sequence[int]) -> tuple[int, ...]:
        """Return the order of ``original`` that corresponds to ``order``, an order of ``graph``."""
        if self.graph is self.original:
            return tuple(order)
        return complete_order(self.original, [self.ops[i] for i in order])


def unreduced(graph: Graph) -> Reduced:
    """Return the reduction of ``graph`` that changes nothing."""
    return Reduced(graph, graph, tuple(range(len(graph.ops))))


def cut(graph: Graph, first: int, last: int) -> Graph:
    """Return the graph of the ops from ``first`` to ``last``, inclusive.

    Its inputs are the tensors that other ops produce or that are graph inputs. Its outputs are the
    tensors that other ops read or that are graph outputs.
    """
    if not 0 <= first <= last < len(graph.ops):
        raise InputError(
            f"{graph.name}: slice {first}:{last} is not within its ops; use 0:{len(graph.ops) - 1} "
            "or a part of it"
        )
    ops = graph.ops[first : last + 1]
    written = {t for op in ops for t in op.outputs}
    read = dict.fromkeys(t for op in ops for t in op.inputs)
    inside = range(first, last + 1)
    weights = {t for op in graph.constant_ops for t in graph.ops[op].outputs} - written
    known, given = written | weights, set(graph.inputs)
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
    return compact(graph.name, tensors, ops, inputs, outputs)


def compact(
    name: str,
    tensors: Sequence[Tensor],
    ops: Sequence[Op],
    inputs: Sequence[int],
    outputs: Sequence[int],
) -> Graph:
    """Return the graph of ``ops`` without unused tensors."""
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
