"""Conversion of ``rewrite.Net`` to Relax: a lean kernel per operator, in the net's order.

1. Each operator becomes a small Relax function of high-level operators. Pieces are sliced and
joined. The source's bindings supply the computation, with weights and constants sliced at compile
time.

2. TVM legalises and fuses each function to one kernel; equal functions share a kernel. The lean
schedule leaves no padded copy, concatenation or raw sum in memory.

3. An operator that adds to a buffer, or writes part of one, is called by ``call_tir_inplace``: its
kernel receives the result in the storage of that argument.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.lean import LEAN, lean
from tvm_serenity.kernels.shared_storage import in_place, into_part
from tvm_serenity.relax.rewrite_function import OpFunction, called_again
from tvm_serenity.relax.rewrite_read import Reading
from tvm_serenity.rewrite.net import Kind, Net, Node


def emit(mod: tvm.IRModule, reading: Reading, net: Net, target: tvm.target.Target) -> Any:
    """Return ``mod`` with a ``main`` that runs ``net`` in its order."""
    writer = _Functions(reading, net)
    plans = [writer.plan(node) for node in net.nodes]
    kernels = _kernels(writer.functions, mod, target)
    builder = relax.BlockBuilder()
    params = [relax.Var(p.name, p.ty) for p in reading.params]
    held: dict[int, Any] = dict(enumerate(params))
    functions: dict[Any, Any] = {}
    main = mod["main"]
    with builder.function("main", params, attrs=dict(main.attrs or {})):
        with builder.dataflow():
            for node, plan in zip(net.nodes, plans, strict=True):
                if _is_same(net, node) and node.output not in net.outputs:
                    held[node.output] = held[node.operands[0].pieces[0].value]
                    continue
                if _is_finished(reading, node):
                    call = _finished(reading, node, held)
                else:
                    call = _call(net, node, plan, kernels, functions, held)
                name = net.values[node.output].name
                if node.output in net.outputs:
                    held[node.output] = builder.emit_output(call, name)
                else:
                    held[node.output] = builder.emit(call, name)
        builder.emit_func_output(_result(main.body.body, reading, held))
    made = builder.get()
    result = {g: f for g, f in mod.functions.items() if g.name_hint != "main"}
    result.update(functions.values())
    result[made.get_global_var("main")] = made["main"]
    return tvm.IRModule(result, attrs=mod.attrs)


@dataclass(frozen=True)
class _Plan:
    """The call of an operator: its function, and arguments as values (ints) or constants."""

    function: int
    arguments: tuple[Any, ...]
    base_at: int | None = None


@dataclass
class _Functions:
    """The primitive functions of a net's operators, without duplicates."""

    reading: Reading
    net: Net
    functions: list[Any] = field(default_factory=list)
    known: dict[Any, int] = field(default_factory=dict)

    def plan(self, node: Node) -> _Plan | None:
        """Return the function and the arguments of an operator.

        None if it needs no new function.
        """
        if node.kind is Kind.VIEW or _is_finished(self.reading, node):
            return None
        body = OpFunction(self.reading, self.net, node)
        function = body.build()
        key = compat.structural_key(function)
        if key not in self.known:
            self.known[key] = len(self.functions)
            self.functions.append(function)
        values = list(body.keys)
        base_at = None
        if node.base is not None and node.into is None:
            base_at = values.index(node.base)
        return _Plan(self.known[key], tuple(values), base_at)


def _is_finished(reading: Reading, node: Node) -> bool:
    """Return whether a node calls a kernel of the module on its original operands."""
    if node.kind is not Kind.OPAQUE or len(reading.sources[node.source].bindings) > 1:
        return False
    direct = all(len(o.pieces) == 1 and o.pieces[0].direct for o in node.operands)
    return direct and not compat.is_high_level(reading.sources[node.source].head)


def _finished(reading: Reading, node: Node, held: dict[int, Any]) -> Any:
    source = reading.sources[node.source]
    values = (held[o.values[0]] for o in node.operands)
    return called_again(source.head, dict(zip(source.operands, values, strict=True)), lambda c: c)


def _kernels(
    functions: Sequence[Any], source: tvm.IRModule, target: tvm.target.Target
) -> list[Any]:
    """Return a lean kernel for each function; ``source`` holds the kernels that they call."""
    names = [f"rewritten_{i}" for i in range(len(functions))]
    mod = _called(functions, names)
    for variable, function in source.functions.items():
        if compat.is_prim_func(function):
            mod[variable] = function
    try:
        with target:
            mod = compat.fuse_primitives()(mod)
    except tvm.error.InternalError as error:
        reason = str(error).strip().splitlines()[0]
        raise UnsupportedError(f"TVM cannot fuse the rewritten operators: {reason}") from error
    result = []
    for name, function in zip(names, functions, strict=True):
        kernel = mod[name]
        if not compat.is_prim_func(kernel) or len(kernel.params) != len(function.params) + 1:
            raise UnsupportedError(f"{name}: TVM cannot lower the function to a kernel")
        result.append(lean(kernel) if compat.has_blocks(kernel) else kernel)
    return result


def _called(functions: Sequence[Any], names: Sequence[str]) -> Any:
    """Return a module of the functions and a ``main`` that calls each: fusion ignores the rest."""
    builder = relax.BlockBuilder()
    variables = [builder.add_func(f, n) for f, n in zip(functions, names, strict=True)]
    params = [[relax.Var(p.name, p.ty) for p in f.params] for f in functions]
    with builder.function("main", [p for group in params for p in group]):
        with builder.dataflow():
            made = [
                builder.emit_output(relax.Call(v, group))
                for v, group in zip(variables, params, strict=True)
            ]
        builder.emit_func_output(relax.Tuple(made))
    return builder.get()


def _call(
    net: Net,
    node: Node,
    plan: _Plan | None,
    kernels: Sequence[Any],
    functions: dict[Any, Any],
    held: dict[int, Any],
) -> Any:
    """Return the expression that runs one operator."""
    value = net.values[node.output]
    assert value.shape is not None
    if plan is None:
        return relax.op.reshape(held[node.operands[0].pieces[0].value], value.shape)
    arguments = [held[a] if isinstance(a, int) else a for a in plan.arguments]
    part = node.into and (node.into, node.axis, value.shape)
    key = (plan.function, plan.base_at, part, node.base is not None)
    if key not in functions:
        kernel = kernels[plan.function]
        if node.into is not None:
            begun = node.base is not None
            kernel = into_part(kernel, value.shape, node.axis or 0, node.into[0], begun=begun)
        elif plan.base_at is not None:
            kernel = in_place(kernel, plan.base_at)
        name = f"{node.kind}_{len(functions)}"
        kernel = kernel.with_attr("global_symbol", name).with_attr(LEAN, True)
        functions[key] = (compat.kernel_variable(name, kernel), kernel)
    variable = functions[key][0]
    ty = relax.TensorType(value.shape, value.dtype)
    if node.base is None:
        return relax.op.call_tir(variable, relax.Tuple(arguments), ty)
    at = plan.base_at
    if node.into is not None:
        arguments, at = [held[node.base], *arguments], 0
    assert at is not None
    return relax.op.call_tir_inplace(variable, relax.Tuple(arguments), at, ty)


def _is_same(net: Net, node: Node) -> bool:
    """Return whether a view has the shape of its source."""
    if node.kind is not Kind.VIEW:
        return False
    shown = net.values[node.operands[0].pieces[0].value]
    return shown.shape == net.values[node.output].shape


def _result(expr: relax.Expr, reading: Reading, held: dict[int, Any]) -> Any:
    number = {s.var: n.output for n in reading.net.nodes for s in [reading.sources[n.source]]}
    number.update({p: i for i, p in enumerate(reading.params)})

    def again(part: relax.Var) -> Any:
        if isinstance(part, relax.Tuple):
            return relax.Tuple([again(f) for f in part.fields])
        return held[number[part]]

    return again(expr)
