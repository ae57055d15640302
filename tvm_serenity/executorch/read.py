"""An edge program's nodes as a ``Graph``: what the order search sees.

Views (``aten.view_copy``, which ExecuTorch makes a view at export) show their input's storage. A
node that writes to an argument (the write-back of a buffer) waits for those that read it before,
and those that read it after wait for it. Parameters and buffers are constants of the order.
"""

import operator
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends.building import Building
from tvm_serenity.graph import Graph, Role, Tensor

_VIEW = "view_copy"


@dataclass(frozen=True)
class BoundNodes:
    """``graph.ops[i]`` is the nodes ``nodes[i]``: one that runs, and those that take its parts."""

    graph: Graph
    nodes: tuple[tuple[Any, ...], ...]


def read_nodes(graph: Any, counted: Set[str]) -> BoundNodes:
    """Return the nodes of a ``torch.fx.Graph`` as a graph.

    ``counted``: names of the placeholders that take memory of the arena. Raises
    :class:`UnsupportedError` on sizes that are not known, naming the node.
    """
    reader = _Reader(counted)
    for node in graph.nodes:
        reader.node(node)
    made = reader.building.graph("edge", reader.inputs, reader.outputs)
    return BoundNodes(made, tuple(map(tuple, reader.nodes)))


@dataclass
class _Reader:
    counted: Set[str]
    building: Building = field(default_factory=Building)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    nodes: list[list[Any]] = field(default_factory=list)
    values: dict[Any, list[int]] = field(default_factory=dict)
    maker: dict[Any, int] = field(default_factory=dict)

    def node(self, node: Any) -> None:
        if node.op in ("placeholder", "get_attr"):
            activation = node.op == "placeholder" and node.name in self.counted
            role = Role.ACTIVATION if activation else Role.CONSTANT
            self.values[node] = self.declare(node, role)
            self.inputs += self.values[node] if activation else []
        elif node.op == "output":
            self.outputs += [t for arg in node.all_input_nodes for t in self.made_by(arg)]
        elif node.target is operator.getitem and node.args[0] in self.maker:
            source, index = node.args
            self.values[node] = [self.values[source][index]]
            self.maker[node] = self.maker[source]
            self.nodes[self.maker[source]].append(node)
        else:
            self.run(node)

    def role(self, tensor: int) -> Role:
        return self.building.tensors[tensor].role

    def made_by(self, node: Any) -> list[int]:
        return [t for t in self.values[node] if self.role(t) is Role.ACTIVATION]

    def run(self, node: Any) -> None:
        read = [t for arg in node.all_input_nodes for t in self.values[arg]]
        made = self.declare(node, Role.ACTIVATION)
        view = read[0] if _VIEW in str(node.target) and read else None
        if view is not None and self.role(view) is not Role.ACTIVATION:
            view = None
        mutated = _mutated(node, self.values)
        target = str(node.target)
        number = self.building.op(node.name, target, read, made, view=view, mutated=mutated)
        self.nodes.append([node])
        self.values[node], self.maker[node] = made, number

    def declare(self, node: Any, role: Role) -> list[int]:
        """The tensors of a node's value; one of no bytes where it is a number."""
        found, held = [], node.meta.get("val")
        for index, value in enumerate(held if isinstance(held, list | tuple) else [held]):
            name = node.name if index == 0 else f"{node.name}.{index}"
            found.append(self.building.tensor(Tensor(name, _bytes(node, value), role=role)))
        return found


def _bytes(node: Any, value: Any) -> int:
    if not hasattr(value, "numel"):
        return 0
    count = value.numel()
    if type(count) is not int:  # a symbol, which int() would silently fix at its example's size
        sizes = ", ".join(map(str, value.shape))
        raise UnsupportedError(f"node {node.name!r} has a symbolic shape ({sizes})")
    return count * int(value.element_size())


def _mutated(node: Any, values: dict[Any, list[int]]) -> Sequence[int]:
    """The tensors that a node writes to, by the schema of its operator."""
    schema = getattr(node.target, "_schema", None)
    found: list[int] = []
    for index, argument in enumerate(schema.arguments if schema is not None else ()):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        given = node.args[index] if index < len(node.args) else node.kwargs.get(argument.name)
        for each in given if isinstance(given, list | tuple) else [given]:
            found += values.get(each, []) if hasattr(each, "op") else []
    return found
