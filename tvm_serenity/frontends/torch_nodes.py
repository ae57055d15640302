"""The nodes of an exported program as a ``Graph`` for the order search.

Views share their input's storage: results that their operator's schema declares as an argument (and
that are one, for operators such as ``reshape`` that may copy), and ``aten.view_copy``, which
ExecuTorch converts to a view at export. A node that writes to an argument (the write-back of a
buffer) waits for earlier readers of it, and later readers wait for the node. Parameters and buffers
are constants.
"""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends.building import Building
from tvm_serenity.frontends.model_file import SIZED
from tvm_serenity.graph import MAX_BYTES, Graph, Role, Tensor

_VIEW = "view_copy"


@dataclass(frozen=True)
class BoundNodes:
    """``graph.ops[i]`` is the nodes ``nodes[i]``: the node that runs, and its item getters."""

    graph: Graph
    nodes: tuple[tuple[Any, ...], ...]


def read_nodes(graph: Any, inputs: Mapping[str, Role]) -> BoundNodes:
    """Return the nodes of a ``torch.fx.Graph`` as a graph.

    ``inputs``: names of the user's placeholders, as activations, or as external if the caller keeps
    them. Raises :class:`UnsupportedError`, which names the node, for unknown sizes.
    """
    reader = _Reader(inputs)
    for node in graph.nodes:
        reader.node(node)
    made = reader.building.graph("edge", reader.inputs, reader.outputs)
    return BoundNodes(made, tuple(map(tuple, reader.nodes)))


def read_program(exported: Any, role: Role = Role.ACTIVATION) -> BoundNodes:
    """Return the nodes of a ``torch.export.ExportedProgram``; ``role``: that of its inputs."""
    given = dict.fromkeys(map(str, exported.graph_signature.user_inputs), role)
    return read_nodes(exported.graph_module.graph, given)


@dataclass
class _Reader:
    given: Mapping[str, Role]
    building: Building = field(default_factory=Building)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    nodes: list[list[Any]] = field(default_factory=list)
    values: dict[Any, list[int]] = field(default_factory=dict)
    maker: dict[Any, int] = field(default_factory=dict)

    def node(self, node: Any) -> None:
        if node.op in ("placeholder", "get_attr"):
            role = self.given.get(node.name, Role.CONSTANT)
            if node.op == "get_attr":
                role = Role.CONSTANT
            self.values[node] = self.declare(node, role)
            self.inputs += self.values[node] if role is not Role.CONSTANT else []
        elif node.op == "output":
            self.outputs += [t for arg in node.all_input_nodes for t in self.computed_results(arg)]
        elif node.target is operator.getitem and node.args[0] in self.maker:
            source, index = node.args
            self.values[node] = [self.values[source][index]]
            self.maker[node] = self.maker[source]
            self.nodes[self.maker[source]].append(node)
        else:
            self.run(node)

    def role(self, tensor: int) -> Role:
        return self.building.tensors[tensor].role

    def computed_results(self, node: Any) -> list[int]:
        return [t for t in self.values[node] if self.role(t) is not Role.CONSTANT]

    def run(self, node: Any) -> None:
        read = [t for arg in node.all_input_nodes for t in self.values[arg]]
        view = self.shown(node)
        made = self.declare(node, Role.ACTIVATION, view)
        mutated = _mutated(node, self.values)
        target = str(node.target)
        number = self.building.op(node.name, target, read, made, view=view, mutated=mutated)
        self.nodes.append([node])
        self.values[node], self.maker[node] = made, number

    def shown(self, node: Any) -> int | None:
        """Return the tensor whose storage all results of a node share, if there is one."""
        sources = node.all_input_nodes[:1] if _VIEW in str(node.target) else _aliased(node)
        if not sources or not self.values[sources[0]]:
            return None
        source = self.values[sources[0]][0]
        return source if self.role(source) is not Role.CONSTANT else None

    def declare(self, node: Any, role: Role, view: int | None = None) -> list[int]:
        """Return the tensors of a node's value; a number is a tensor of no bytes.

        An expanded value repeats the elements of its view and has no further bytes.
        """
        most = MAX_BYTES if view is None else self.building.tensors[view].size_bytes
        found, held = [], node.meta.get("val")
        for index, value in enumerate(held if isinstance(held, list | tuple) else [held]):
            name = node.name if index == 0 else f"{node.name}.{index}"
            found.append(
                self.building.tensor(Tensor(name, min(most, _bytes(node, value)), role=role))
            )
        return found


def _bytes(node: Any, value: Any) -> int:
    if not hasattr(value, "numel"):
        return 0
    count = value.numel()
    if type(count) is not int:  # int() would silently return the size of the example
        sizes = ", ".join(map(str, value.shape))
        raise UnsupportedError(f"node {node.name!r} has a symbolic shape ({sizes}); {SIZED}")
    return count * int(value.element_size())


def _aliased(node: Any) -> list[Any]:
    """Return the argument whose storage all results of a node share, by its schema."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return []
    returned = [value.alias_info for value in schema.returns]
    if not returned or any(alias is None for alias in returned):
        return []
    names = set(returned[0].before_set) or {"*"}  # a list of parts has the alias of its argument
    if any(set(alias.before_set or "*") != names for alias in returned):
        return []
    for index, argument in enumerate(schema.arguments):
        alias = argument.alias_info
        if alias is not None and names & (set(alias.before_set) | set(alias.after_set)):
            given = node.args[index] if index < len(node.args) else node.kwargs.get(argument.name)
            return [given] if hasattr(given, "op") and _is_alias(node, given) else []
    return []


def _is_alias(node: Any, source: Any) -> bool:
    """Return whether a node that may return a view does: as traced, or by its operator.

    Composite operators (``reshape``, ``to``) return views or copies.
    """
    if _storages(node) == _storages(source):
        return True
    return not node.target.has_kernel_for_dispatch_key("CompositeImplicitAutograd")


def _storages(node: Any) -> set[int]:
    held = node.meta.get("val")
    values = held if isinstance(held, list | tuple) else [held]
    return {v.untyped_storage()._cdata for v in values if hasattr(v, "untyped_storage")}


def _mutated(node: Any, values: dict[Any, list[int]]) -> Sequence[int]:
    """Return the tensors that a node writes to, by its operator's schema."""
    schema = getattr(node.target, "_schema", None)
    found: list[int] = []
    for index, argument in enumerate(schema.arguments if schema is not None else ()):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        given = node.args[index] if index < len(node.args) else node.kwargs.get(argument.name)
        for each in given if isinstance(given, list | tuple) else [given]:
            found += values.get(each, []) if hasattr(each, "op") else []
    return found
