"""Sizes of tensors, with symbolic sizes at the upper bounds that the function states."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import tvm
from tvm import relax, tirx

from tvm_serenity import compat
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.nodes import mapped
from tvm_serenity.kernels.workspace import BOUNDS, largest
from tvm_serenity.relax.bindings import bindings

UPPER_BOUNDS = "tir_var_upper_bound"
"""Function attribute with upper bounds of symbolic sizes by name, as TVM's planner reads it."""


def upper_bounds(function: relax.Function) -> dict[str, int]:
    """Return the upper bounds of a function's symbolic sizes, by name."""
    stated = (function.attrs or {}).get(UPPER_BOUNDS, None) or {}
    return {str(name): int(bound) for name, bound in stated.items()}


def largest_shape(ty: relax.Type, name: str, bounds: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of a tensor at the upper bounds of its symbolic sizes.

    ``bounds``: by name; an extent that is a formula is bounded by interval arithmetic. Raises
    :class:`UnsupportedError` if a symbol has no bound or decides no extent.
    """
    values = extents(ty)
    if values is None:
        raise UnsupportedError(f"tensor {name!r} has an unknown rank")
    if all(isinstance(v, tvm.tirx.IntImm) for v in values):
        return tuple(int(v) for v in values)
    shape, unknown = largest(values, bounds)
    if unknown or max(shape) >= _ENDLESS:
        raise UnsupportedError(
            f"tensor {name!r} has a symbolic shape ({', '.join(map(str, values))}): fix its sizes, "
            f"or state their upper bounds in the function's attribute {UPPER_BOUNDS}"
        )
    return tuple(shape)


_ENDLESS = 2**31
"""A size beyond any extent."""


def at_bounds(number: Any, bounds: Mapping[str, int]) -> int:
    """Return a size with each symbol at its upper bound.

    Raises :class:`UnsupportedError` if a symbol has none.
    """

    def bound(symbol: Any) -> Any:
        return tirx.IntImm(str(symbol.ty.dtype), bounds.get(symbol.name, _ENDLESS))

    found = tvm.sym.Analyzer().simplify(mapped(number, tirx.Var, bound))
    if not isinstance(found, tirx.IntImm) or not -_ENDLESS < int(found) < _ENDLESS:
        raise UnsupportedError(f"the size {number} has no upper bound; state one, or fix the size")
    return int(found)


def bounded_kernels(mod: tvm.IRModule) -> Any:
    """Return ``mod`` with upper bounds of sizes in the attributes of its kernels."""
    found: dict[Any, dict[str, int]] = {}
    for function in mod.functions.values():
        bounds = upper_bounds(function) if isinstance(function, relax.Function) else {}
        if not bounds:
            continue
        for _, call in bindings(function):
            kernel = compat.called_kernel(call) if compat.is_call(call) else None
            if kernel is not None:
                held = found.setdefault(kernel, {})
                for name, value in _bounds_of(mod[kernel], call, bounds):
                    held[name] = max(value, held.get(name, 0))
    stated = {kernel: held for kernel, held in found.items() if held}
    functions = {
        name: f.with_attr(BOUNDS, stated[name]) if name in stated else f
        for name, f in mod.functions.items()
    }
    return tvm.IRModule(functions, attrs=mod.attrs) if stated else mod


def _bounds_of(
    kernel: tirx.PrimFunc, call: relax.Call, bounds: Mapping[str, int]
) -> Iterator[tuple[str, int]]:
    """Return the symbols in a kernel's sizes, each with its upper bound in a call, if any."""
    arguments = compat.kernel_arguments(call)
    given = [a.ty if compat.is_tensor(a.ty) else a for a in arguments]
    if compat.overwritten(call) is None:
        given += compat.result_types(call)
    pairs: list[tuple[Any, Any]] = []
    for param, passed in zip(kernel.params, given, strict=False):
        if compat.is_buffer_param(param):
            pairs += zip(param.ty.shape, extents(passed) or (), strict=False)
        else:
            pairs.append((param, passed))
    for symbol, known in pairs:
        if isinstance(symbol, tirx.Var):
            with suppress(UnsupportedError):  # the code that needs the bound reports it
                yield symbol.name, at_bounds(known, bounds)


def extents(ty: relax.Type) -> tuple[Any, ...] | None:
    """Return the extents of a tensor as expressions; None if its rank is unknown."""
    values = getattr(ty.shape, "values", None)
    return None if values is None else tuple(values)


def guards(function: relax.Function, bounds: Mapping[str, int]) -> list[tuple[Any, Any]]:
    """Return kernels that fail if a size exceeds its bound, each with its parameter.

    Without a guard, tensors in one arena would silently overlap. It is a kernel because a deployed
    machine may lack any other facility.
    """
    made = []
    for param in function.params:
        if not isinstance(param.ty, relax.TensorType):
            continue
        symbols = relax.analysis.definable_tir_vars_in_type(param.ty)
        stated = [symbol for symbol in dict.fromkeys(symbols) if symbol.name in bounds]
        if stated:
            made.append((_guard(param, stated, bounds), param))
    return made


def _guard(param: relax.Var, symbols: Sequence[Any], bounds: Mapping[str, int]) -> Any:
    values = extents(param.ty)
    assert values is not None
    buffer = tirx.decl_buffer(list(values), compat.dtype_name(param.ty), param.name)
    checks = [
        tirx.AssertStmt(
            symbol <= bounds[symbol.name],
            tvm.ir.StringImm("ValueError"),
            [
                tvm.ir.StringImm(
                    f"{symbol.name} is more than {bounds[symbol.name]}, for which memory is planned"
                )
            ],
        )
        for symbol in symbols
    ]
    return tirx.PrimFunc([buffer], tirx.SeqStmt([*checks, tirx.Evaluate(0)]))
