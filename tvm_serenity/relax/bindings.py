"""Rewriting of a module's ``main``, binding by binding."""

from collections.abc import Callable
from typing import Any, Protocol

import tvm
from tvm import relax

from tvm_serenity import compat


class BindingWriter(Protocol):
    """A writer of bindings; created with a builder and replacements of the parameters."""

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Write one binding."""

    def given(self, value: relax.Expr) -> Any:
        """Return the replacement of an expression, in the layout of the old function."""


def dataflow_main(mod: tvm.IRModule) -> Any:
    """Return the function ``main`` if it is one dataflow block that can be rewritten."""
    if "main" not in {name.name_hint for name in mod.get_global_vars()}:
        return None
    function = mod["main"]
    return function if len(function.body.blocks) == 1 else None


def bindings(function: relax.Function) -> list[tuple[Any, Any]]:
    """Return the variables of a function and their values, in order."""
    return [(b.var, b.value) for block in function.body.blocks for b in block.bindings]


def variables(value: relax.Expr) -> set[Any]:
    """Return the variables in an expression."""
    found: list[Any] = []
    relax.analysis.post_order_visit(value, found.append)
    return {part for part in found if isinstance(part, relax.Var)}


def kernel_of_blocks(mod: tvm.IRModule, value: relax.Expr) -> Any:
    """Return the kernel of blocks that makes a tensor of its own; None if there is none."""
    name = compat.called_kernel(value) if compat.is_call(value) else None
    if name is None or compat.overwritten(value) is not None or not compat.is_tensor(value.ty):
        return None
    return mod[name] if compat.has_blocks(mod[name]) else None


def renewed(expr: relax.Expr, given: Callable[[relax.Expr], Any]) -> Any:
    """Return an expression, no variable, with its parts replaced by what ``given`` returns."""
    if isinstance(expr, relax.Tuple):
        return relax.Tuple([given(part) for part in expr.fields])
    if isinstance(expr, relax.TupleGetItem):
        return relax.TupleGetItem(given(expr.tuple_value), expr.index)
    if compat.is_call(expr):
        return compat.call_like(expr, [given(argument) for argument in expr.args])
    return expr


def emitted(builder: relax.BlockBuilder, expr: relax.Expr, name: str) -> Any:
    """Return ``expr`` bound to a new variable, unless it is a variable or a constant."""
    if isinstance(expr, relax.Var) or compat.is_constant(expr):
        return expr
    return builder.emit(expr, name)


def rewritten(
    mod: tvm.IRModule,
    function: relax.Function,
    writer_of: Callable[[relax.BlockBuilder, dict[Any, Any]], BindingWriter],
) -> tvm.IRModule:
    """Return ``mod`` with the bindings of ``function``, its ``main``, as a writer writes them.

    Parameters, result and attributes stay; unused bindings are removed.
    """
    others = {name: f for name, f in mod.functions.items() if name.name_hint != "main"}
    builder = relax.BlockBuilder(tvm.IRModule(others))
    params = [relax.Var(p.name, p.ty) for p in function.params]
    writer = writer_of(builder, dict(zip(function.params, params, strict=True)))
    with builder.function("main", params):
        with builder.dataflow():
            for var, value in bindings(function):
                writer.bind(var, value)
            result = builder.emit_output(writer.given(function.body.body))
        builder.emit_func_output(result)
    made = builder.finalize()
    made["main"] = made["main"].with_attrs(dict(function.attrs or {}))
    made = relax.transform.DeadCodeElimination(["main"])(made)
    return tvm.IRModule(dict(made.functions.items()), attrs=mod.attrs)
