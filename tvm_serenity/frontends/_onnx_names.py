"""The values that the nodes of an ONNX graph read, those of its subgraphs included."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx


def outer_reads(node: "onnx.NodeProto") -> Iterator[str]:
    """Yield names that the subgraphs of ``node`` read from outside of them, each once."""
    seen: set[str] = set()
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for name in _free_names(graph):
                if name not in seen:
                    seen.add(name)
                    yield name


def _free_names(graph: "onnx.GraphProto") -> Iterator[str]:
    made = {i.name for i in graph.input} | {i.name for i in graph.initializer}
    made |= {s.values.name for s in graph.sparse_initializer}
    for node in graph.node:
        for name in (*node.input, *outer_reads(node)):
            if name and name not in made:
                yield name
        made.update(node.output)
    yield from (o.name for o in graph.output if o.name not in made)


def read_names(graph: "onnx.GraphProto") -> Iterator[str]:
    """Yield names that some node reads or the graph returns."""
    for node in graph.node:
        yield from node.input
        yield from outer_reads(node)
    yield from (output.name for output in graph.output)
