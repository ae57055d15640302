"""An edge program's nodes as a ``Graph``: what the order search sees.

Views (``aten.view_copy``, which ExecuTorch makes a view at export) show their input's storage. A
node that writes to an argument (the write-back of a buffer) waits for those that read it before,
and those that read it after wait for it. Parameters and buffers are constants of the order.
"""

import operator
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.graph import Graph, Op, Role, Tensor

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
    tensors, ops = tuple(reader.tensors), tuple(reader.operators())
    outputs = tuple(dict.fromkeys(reader.outputs))
    return BoundNodes(
        Graph("edge", tensors, ops, tuple(reader.inputs), outputs), tuple(map(tuple, reader.nodes))
    )


@dataclass
class _Reader:
    counted: Set[str]
    tensors: list[Tensor] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    nodes: list[list[Any]] = field(default_factory=list)
    ops: list[tuple[str, str, list[int], list[int], int | None]] = field(default_factory=list)
    values: dict[Any, list[int]] = field(default_factory=dict)
    maker: dict[Any, int] = field(default_factory=dict)
    root: dict[int, int] = field(default_factory=dict)
    readers: dict[int, list[int]] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    """By storage: the token that its last write makes."""

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

    def made_by(self, node: Any) -> list[int]:
        return [t for t in self.values[node] if self.tensors[t].role is Role.ACTIVATION]

    def run(self, node: Any) -> None:
        number = len(self.ops)
        read = [t for arg in node.all_input_nodes for t in self.values[arg]]
        made = self.declare(node, Role.ACTIVATION)
        view = read[0] if _VIEW in str(node.target) and read else None
        if view is not None and self.tensors[view].role is not Role.ACTIVATION:
            view = None
        self.values[node], self.maker[node] = made, number
        roots = [self.root.get(t, t) for t in read]
        tokens = [self.written[r] for r in roots if r in self.written]
        self.nodes.append([node])
        self.ops.append((node.name, str(node.target), [*read, *tokens], list(made), view))
        if view is not None:
            self.root[made[0]] = self.root.get(view, view)
        for storage in dict.fromkeys(self.root.get(t, t) for t in _mutated(node, self.values)):
            for before in self.readers.get(storage, ()):
                self.ops[number][2].append(self.token(before))
            self.written[storage] = self.token(number)
        for storage in dict.fromkeys(roots):
            self.readers.setdefault(storage, []).append(number)

    def token(self, op: int) -> int:
        """A tensor of no bytes that operator ``op`` makes: who reads it waits for it."""
        name = f"{self.ops[op][0]} before {len(self.tensors)}"
        self.tensors.append(Tensor(name, 0))
        self.ops[op][3].append(len(self.tensors) - 1)
        return len(self.tensors) - 1

    def declare(self, node: Any, role: Role) -> list[int]:
        """The tensors of a node's value; one of no bytes where it is a number."""
        first, held = len(self.tensors), node.meta.get("val")
        for index, value in enumerate(held if isinstance(held, list | tuple) else [held]):
            name = node.name if index == 0 else f"{node.name}.{index}"
            self.tensors.append(Tensor(name, _bytes(node, value), role=role))
        return list(range(first, len(self.tensors)))

    def operators(self) -> Iterator[Op]:
        for name, kind, read, made, view in self.ops:
            yield Op(name, kind, tuple(dict.fromkeys(read)), tuple(made), view_of=view)


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
