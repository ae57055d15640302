"""Conversion of Relax bindings to a ``Graph``, the searches' view of a lowered function.

A binding that runs code (a kernel, a packed call) is an operator. Tuples, tuple items, renamings
and constants run nothing; they are written back where they are needed. The result of
``relax.reshape`` is a view of its input. The result of ``call_tir_inplace`` is the argument that it
overwrites: earlier readers of that argument must precede it in any order. Keys are Var objects,
because names are not unique after FuseOps.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.graph import Graph, Op, Role, Tensor
from tvm_serenity.kernels.workspace import workspace_of
from tvm_serenity.relax.extents import largest_shape, upper_bounds
from tvm_serenity.relax.lower import lowered

Value = int | tuple["Value", ...] | None
"""The value of a Relax variable: a tensor's index, a tuple of values, or None."""


WORKSPACES = "serenity.workspace_bytes"
"""Module attribute: bytes that each external function allocates itself, by symbol."""


@dataclass(frozen=True)
class BoundGraph:
    """Bindings and their graph: ``graph.ops[i]`` is ``bindings[run[i]]``.

    ``results``: the returned tensors, with repetitions; the graph's outputs have no repetitions.
    """

    graph: Graph
    bindings: tuple[Any, ...]
    run: tuple[int, ...]
    values: dict[Any, Value]
    results: tuple[int, ...] = ()

    def arrange(self, order: Sequence[int]) -> list[Any]:
        """Return all bindings with the operators in ``order``.

        A binding that runs nothing directly precedes the first binding that needs it.
        """
        position = {b.var: i for i, b in enumerate(self.bindings)}
        done: set[int] = set()
        result = []
        for index in [*(self.run[op] for op in order), *range(len(self.bindings))]:
            stack = [index] if index not in done else []
            while stack:
                needed = (position.get(v) for v in _variables(self.bindings[stack[-1]].value))
                missing = [n for n in needed if n is not None and n not in done]
                if missing:
                    stack.append(missing[0])
                else:
                    done.add(stack[-1])
                    result.append(self.bindings[stack.pop()])
        return result


@dataclass
class _Reader:
    module: tvm.IRModule
    workspace: bool
    bounds: Mapping[str, int] = field(default_factory=dict)
    tensors: list[Tensor] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    run: list[int] = field(default_factory=list)
    values: dict[Any, Value] = field(default_factory=dict)
    scratch: dict[Any, int] = field(default_factory=dict)

    def declare(self, ty: relax.Type, name: str, role: Role) -> Value:
        if compat.is_tuple(ty):
            return tuple(self.declare(t, f"{name}.{i}", role) for i, t in enumerate(ty.fields))
        if not compat.is_tensor(ty):
            return None
        shape, dtype = largest_shape(ty, name, self.bounds), compat.dtype_name(ty)
        size = compat.size_bytes(shape, dtype)
        self.tensors.append(Tensor(name, size, shape, dtype, role))
        return len(self.tensors) - 1

    def scratch_bytes(self, kernel: Any) -> int:
        if kernel not in self.scratch:
            try:
                self.scratch[kernel] = workspace_of(self.module[kernel])
            except UnsupportedError as error:
                raise UnsupportedError(f"kernel {kernel.name_hint!r}: {error}") from None
        return self.scratch[kernel]

    def external_bytes(self, symbol: str) -> int:
        """Return the bytes that an external function states it allocates at run time."""
        stated = (self.module.attrs or {}).get(WORKSPACES, None) or {}
        return int(stated.get(symbol, 0))

    def value(self, expr: relax.Expr) -> Value:
        """Return the tensors of an argument; a literal becomes a constant of the graph."""
        if expr in self.values:
            return self.values[expr]
        if isinstance(expr, relax.Tuple):
            return tuple(self.value(field) for field in expr.fields)
        if isinstance(expr, relax.TupleGetItem):
            whole = self.value(expr.tuple_value)
            return whole[expr.index] if isinstance(whole, tuple) else None
        if compat.is_constant(expr):
            found = self.declare(expr.ty, f"constant_{len(self.tensors)}", Role.CONSTANT)
            self.values[expr] = found
            return found
        return None

    def binding(self, index: int, binding: relax.VarBinding) -> None:
        value, var = binding.value, binding.var
        name = f"{var.name}_{index}"
        if isinstance(value, relax.If):
            raise UnsupportedError(f"binding {name!r}: control flow cannot be scheduled")
        if not compat.is_call(value):
            self.values[var] = self.value(value)
            return
        inputs = tuple(_flat(self.value(a) for a in value.args))
        view = inputs[0] if compat.op_name(value) == "relax.reshape" else None
        taken = compat.overwritten(value)
        if taken is not None:
            whole = self.value(taken)
            view = whole if isinstance(whole, int) else None
        kind, workspace = compat.op_name(value), 0
        kernel = compat.called_kernel(value)
        if kernel is not None:
            kind = kernel.name_hint
            if self.workspace:
                workspace = self.scratch_bytes(kernel)
        external = compat.called_external(value)
        if external is not None:
            kind, workspace = external, self.external_bytes(external) if self.workspace else 0
        self.values[var] = self.declare(var.ty, name, Role.ACTIVATION)
        outputs = tuple(_flat([self.values[var]]))
        self.ops.append(Op(f"{kind}_{index}", kind, inputs, outputs, workspace, view))
        self.run.append(index)


def read_region(
    module: tvm.IRModule,
    params: Iterable[Any],
    bindings: Sequence[Any],
    results: Iterable[Any],
    *,
    weights: frozenset[Any] = frozenset(),
    bounds: Mapping[str, int] | None = None,
    workspace: bool = True,
    external_inputs: bool = True,
    external_outputs: bool = True,
) -> BoundGraph:
    """Return the graph of consecutive ``bindings`` of a function of ``module``.

    ``params``: variables defined before them. ``results``: variables used after them. ``weights``:
    the params that hold constants. ``bounds``: upper bounds of symbolic sizes by name. External
    inputs and outputs live in the caller's memory and are not counted. ``workspace`` counts
    allocations in kernels. Raises :class:`UnsupportedError`, which names the binding, for unbounded
    shapes and control flow.
    """
    reader = _Reader(module, workspace, bounds or {})
    inputs: list[int] = []
    outside = Role.EXTERNAL if external_inputs else Role.ACTIVATION
    for param in params:
        role = Role.CONSTANT if param in weights else outside
        reader.values[param] = reader.declare(param.ty, param.name, role)
        if role is not Role.CONSTANT:
            inputs += _flat([reader.values[param]])
    for index, binding in enumerate(bindings):
        reader.binding(index, binding)
    returned = tuple(_flat(reader.value(r) for r in results))
    outputs = tuple(dict.fromkeys(returned))
    _keep_before(reader, [compat.overwritten(bindings[i].value) is not None for i in reader.run])
    _keep_returned(reader, frozenset(outputs))
    tensors = list(reader.tensors)
    graph = Graph("main", tuple(tensors), tuple(reader.ops), tuple(inputs), outputs)
    if external_outputs:
        for tensor in {graph.storage[t] for t in outputs}:
            if graph.tensors[tensor].role is Role.ACTIVATION:
                tensors[tensor] = _with_role(graph.tensors[tensor], Role.EXTERNAL)
        graph = graph.replace(tensors=tuple(tensors))
    return BoundGraph(graph, tuple(bindings), tuple(reader.run), reader.values, returned)


def _keep_returned(reader: _Reader, outputs: frozenset[int]) -> None:
    """Make the producer of a result that reads only constants an operator without inputs.

    Other operators on constants are folded and take no memory.
    """
    for index, op in enumerate(reader.ops):
        roles = {reader.tensors[t].role for t in op.inputs}
        if roles == {Role.CONSTANT} and op.view_of is None and outputs & set(op.outputs):
            reader.ops[index] = replace(op, inputs=())


def _keep_before(reader: _Reader, overwrites: Sequence[bool]) -> None:
    """Make each overwriting operator wait for the earlier readers of its argument.

    The readers produce a token of no bytes for it.
    """
    root: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    for index, op in enumerate(reader.ops):
        for tensor in op.inputs:
            readers.setdefault(root.get(tensor, tensor), []).append(index)
        if op.view_of is None:
            continue
        shown = root.get(op.view_of, op.view_of)
        root.update(dict.fromkeys(op.outputs, shown))
        if overwrites[index]:
            for before in dict.fromkeys(readers[shown]):
                if before != index:
                    token = len(reader.tensors)
                    name = f"{reader.ops[before].name} before {op.name}"
                    reader.tensors.append(Tensor(name, 0))
                    _extend(reader.ops, before, outputs=(token,))
                    _extend(reader.ops, index, inputs=(token,))


def _extend(
    ops: list[Op], index: int, inputs: tuple[int, ...] = (), outputs: tuple[int, ...] = ()
) -> None:
    op = ops[index]
    ops[index] = replace(op, inputs=(*op.inputs, *inputs), outputs=(*op.outputs, *outputs))


def read_function(module: tvm.IRModule, name: str = "main", **options: Any) -> BoundGraph:
    """Return the graph of a function; the options are those of :func:`read_region`.

    Parameters from ``num_input`` on (an attribute of importers) are weights.
    """
    function = module[name]
    bindings = [b for block in function.body.blocks for b in block.bindings]
    return read_region(
        module,
        function.params,
        bindings,
        [function.body.body],
        weights=weights_of(function),
        bounds=upper_bounds(function),
        **options,
    )


def weights_of(function: relax.Function) -> frozenset[Any]:
    """Return the parameters of a function that hold weights."""
    attrs = function.attrs or {}
    count = int(attrs["num_input"]) if "num_input" in attrs else len(function.params)
    return frozenset(function.params[count:])


def _variables(expr: relax.Expr) -> list[Any]:
    """Return the variables in an expression, in order."""
    if isinstance(expr, relax.Var):
        return [expr]
    if isinstance(expr, relax.Tuple):
        return [v for field in expr.fields for v in _variables(field)]
    if isinstance(expr, relax.TupleGetItem):
        return _variables(expr.tuple_value)
    if compat.is_call(expr):
        return [v for arg in expr.args for v in _variables(arg)]
    return []


def _flat(values: Iterable[Value]) -> list[int]:
    result: list[int] = []
    for value in values:
        if isinstance(value, tuple):
            result += _flat(value)
        elif value is not None:
            result.append(value)
    return result


def _with_role(tensor: Tensor, role: Role) -> Tensor:
    return Tensor(tensor.name, tensor.size_bytes, tensor.shape, tensor.dtype, role)


def module_graph(module: tvm.IRModule, name: str) -> Graph:
    """Return the graph of a fresh module: an operator per fused kernel, with inputs and outputs.

    Scratch is not counted: it depends on the kernels that ``compile`` chooses.
    """
    region = read_function(
        lowered(module), workspace=False, external_inputs=False, external_outputs=False
    )
    return region.graph.replace(name=name)
