"""Results that have no memory of their own, each copied to memory by a kernel of its own.

An output has a place in the arena, and a band of rows has a producer. TVM folds copies, so that
they are inserted into the lowered module.
"""

from collections.abc import Callable, Mapping
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.kernels.copied import copied
from tvm_serenity.relax.attributes import first_values
from tvm_serenity.relax.read import read_function

NAME = "copied"
"""The name of kernels that copy a result."""


def with_copied_constants(mod: tvm.IRModule) -> Any:
    """Return ``mod``, lowered, whose ``main`` returns copies of its constant results.

    A module without constant results is returned unchanged.
    """
    return _with_copies(mod, lambda _, value: compat.is_constant(value))


def with_states_apart(mod: tvm.IRModule) -> Any:
    """Return ``mod``, lowered, whose new states lie apart from the states and from its outputs.

    In incremental inference a state receives its new value in place after a step. A result is
    copied if it would change then, or if it is a new state and lies where another result does. An
    output that a state is, or will be, and a state that receives an input or another state are
    such results. A state that the module updates in place needs no copy.
    """
    count = len(first_values(mod["main"]))
    if not count:
        return mod
    mod = with_copied_constants(mod)
    region = read_function(mod, workspace=False, external_inputs=False, external_outputs=False)
    inputs, lying = region.graph.inputs, [region.graph.storage[t] for t in region.results]
    outputs, taken = len(lying) - count, set(inputs)
    changing, apart = set[int](), set[int]()
    for i, (state, at) in enumerate(zip(inputs[-count:], lying[outputs:], strict=True), outputs):
        if at == state:  # it is as before, or updated in place
            continue
        changing |= {state, at}
        if at in taken:
            apart.add(i)
        taken.add(at)
    apart.update(i for i, at in enumerate(lying[:outputs]) if at in changing)
    return _with_copies(mod, lambda i, _: i in apart)


def _with_copies(mod: tvm.IRModule, wanted: Callable[[int, Any], bool]) -> Any:
    """Return ``mod`` with copies of the results for which ``wanted(number, value)`` is true."""
    function = mod["main"]
    bound = {b.var: b.value for block in function.body.blocks for b in block.bindings}
    results = [_held(value, bound) for value in results_of(function.body.body, bound)]
    if not any(wanted(i, value) for i, value in enumerate(results)):
        return mod
    builder = relax.BlockBuilder(mod)
    bindings: list[Any] = []
    fields = [
        _copied(builder, value, bindings) if wanted(i, value) else value
        for i, value in enumerate(results)
    ]
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
    """Return the variable of a copy of ``value``, whose binding is appended."""
    shape, dtype = compat.static_shape(value.ty, NAME), str(value.ty.dtype.dtype)
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
