"""Names of values in ONNX graphs and subgraphs."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx


def outer_reads(node: "onnx.NodeProto") -> Iterator[str]:
    """Yield the outer names that subgraphs of ``node`` read, without repetitions."""
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
    """Yield the names that nodes read or the graph returns."""
    for node in graph.node:
        yield from node.input
        yield from outer_reads(node)
    yield from (output.name for output in graph.output)


def all_names(graph: "onnx.GraphProto") -> set[str]:
    """Return all names of values in a graph and its subgraphs."""
    found = {value.name for value in (*graph.input, *graph.initializer, *graph.output)}
    for node in graph.node:
        found.update(node.input)
        found.update(node.output)
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                found |= all_names(inner)
    return found


def rename(node: "onnx.NodeProto", names: Mapping[str, str]) -> None:
    """Rename the values of a node, and the outer values that its subgraphs read."""
    for held in (node.input, node.output):
        for index, name in enumerate(held):
            held[index] = names.get(name, name)
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            _rename_within(graph, names)


def _rename_within(graph: "onnx.GraphProto", names: Mapping[str, str]) -> None:
    own = {value.name for value in (*graph.input, *graph.initializer)}
    own |= {name for node in graph.node for name in node.output}
    outside = {name: new for name, new in names.items() if name not in own}
    for node in graph.node:
        rename(node, outside)
    for output in graph.output:
        output.name = outside.get(output.name, output.name)
