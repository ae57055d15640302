"""Constant results, each copied to memory by a kernel of its own.

An output has a place in the arena, and a band of rows has a producer. TVM folds copies of
constants, so that the copies are inserted into the lowered module.
"""

from collections.abc import Mapping
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.kernels.copied import copied

NAME = "copied"
"""The name of kernels that copy a constant."""


def with_copied_constants(mod: tvm.IRModule) -> Any:
    """Return ``mod``, lowered, whose ``main`` returns copies of its constant results.

    A module without constant results is returned unchanged.
    """
    function = mod["main"]
    bound = {b.var: b.value for block in function.body.blocks for b in block.bindings}
    results = results_of(function.body.body, bound)
    if not any(compat.is_constant(_held(value, bound)) for value in results):
        return mod
    builder = relax.BlockBuilder(mod)
    bindings: list[Any] = []
    fields = [_copied(builder, _held(value, bound), bindings) for value in results]
    made = builder.get()
    single = not hasattr(_held(function.body.body, bound), "fields")
    whole = fields[0] if single else relax.Tuple(fields)
    made["main"] = _returning(function, bindings, whole)
    return made


def results_of(body: relax.Expr, bound: Mapping[Any, Any]) -> list[Any]:
    """Return the variables, or expressions, that a function returns, one per result."""
    value = body
    while value in bound and not hasattr(bound[value], "fields"):
        if bound[value] not in bound:
            return [value]
        value = bound[value]
    value = bound.get(value, value)
    return list(value.fields) if hasattr(value, "fields") else [value]


def _held(value: relax.Expr, bound: Mapping[Any, Any]) -> Any:
    """Return the literal or tuple that a variable renames; otherwise the variable itself."""
    while value in bound and not compat.is_call(bound[value]):
        value = bound[value]
    return value


def _copied(builder: relax.BlockBuilder, value: relax.Expr, bindings: list[Any]) -> Any:
    """Return ``value``, or for a constant the variable of its copy, whose binding is appended."""
    if not compat.is_constant(value):
        return value
    array = compat.constant_array(value)
    shape, dtype = array.shape, str(array.dtype)
    variable = builder.add_func(copied(shape, dtype), NAME)
    call = relax.call_tir(variable, [value], relax.TensorType(shape, dtype))
    # not a DataflowVar: TVM would return a view of the constant
    made = relax.Var(f"{NAME}_{len(bindings)}", relax.TensorType(shape, dtype))
    bindings.append(relax.VarBinding(made, builder.normalize(call)))
    return made


def _returning(function: relax.Function, bindings: list[Any], value: relax.Expr) -> Any:
    """Return ``function`` with further bindings at its end and another return value."""
    result = relax.Var("results", _type(value))
    more = [*bindings, relax.VarBinding(result, value)]
    *blocks, last = [*function.body.blocks] or [relax.DataflowBlock([])]
    if isinstance(last, relax.DataflowBlock):
        blocks.append(relax.DataflowBlock([*last.bindings, *more]))
    else:
        blocks += [last, relax.DataflowBlock(more)]
    body = relax.SeqExpr(blocks, result)
    return relax.Function(
        function.params, body, result.ty, function.is_pure, function.attrs, function.span
    )


def _type(value: relax.Expr) -> Any:
    """Return the type of a variable, or of a tuple of variables."""
    if not isinstance(value, relax.Tuple):
        return value.ty
    return relax.TupleType([field.ty for field in value.fields])
