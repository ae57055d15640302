"""Conversion of float operators between dequantise and quantise to integer operators."""

from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.quantize.choices import AUTO, check_rounding
from tvm_serenity.relax.attributes import OPERATORS, ROUNDING
from tvm_serenity.relax.quantize_exact import check_exact, is_mark
from tvm_serenity.relax.quantize_read import Scope, label, name_of, variables
from tvm_serenity.relax.quantize_region import Rewriter
from tvm_serenity.relax.quantize_rules import FILES, REGIONS

KEPT = "serenity.kept_float"
"""Module attribute: ``operator: reason`` for each operator that stayed float."""
IN_FILE = "it is float in the file"


def quantized_module(mod: tvm.IRModule, rounding: str = AUTO, fold_concat: bool = True) -> Any:
    """Return ``mod`` with integer kernels in ``main``, as the pass SerenityQuantize specifies.

    ``rounding`` "auto" is the rounding of the import, or LiteRT's if there is none.
    """
    check_rounding(rounding)
    held = rounding_of(mod)
    if rounding == AUTO:
        rounding = held or "tflite"
    if held is not None and held != rounding:
        raise InputError(
            f"rounding={rounding!r}: the module was imported with integers rounded as {held!r}; "
            f"import it by to_relax(..., integers={rounding!r})"
        )
    if not is_quantised(mod):
        return mod
    function = mod["main"]
    operators = (function.attrs or {}).get(OPERATORS)
    if operators is not None:
        check_exact(function, operators)
    others = {name: f for name, f in mod.functions.items() if name.name_hint != "main"}
    builder = relax.BlockBuilder(tvm.IRModule(others))  # new kernels avoid the names in this module
    params = [relax.Var(p.name, p.ty) for p in function.params]
    scope = Scope(function)
    rules = REGIONS if operators is None else FILES
    rewriter = Rewriter(scope, builder, rounding, fold_concat, rules)
    rewriter.new.update(zip(function.params, params, strict=True))
    with builder.function("main", params):
        with builder.dataflow():
            for block in function.body.blocks:
                for binding in block.bindings:
                    rewriter.binding(binding)
            result = builder.emit_output(rewriter.rewritten(function.body.body))
        builder.emit_func_output(result)
    made = builder.finalize()
    made["main"] = made["main"].with_attrs(dict(function.attrs or {}))
    if operators is not None:
        for name, reason in rewriter.reasons.items():
            raise UnsupportedError(
                f"operator that makes the input of the QUANTIZE of {name!r}: {reason}"
            )
    made = relax.transform.DeadCodeElimination(["main"])(made)
    kept = _kept_float(made, None if operators is not None else rewriter.reasons)
    return tvm.IRModule(dict(made.functions.items()), attrs=mod.attrs).with_attr(KEPT, kept)


def rounding_of(mod: tvm.IRModule) -> str | None:
    """Return the rounding of operators imported as integers; None if there are none."""
    if "main" not in {name.name_hint for name in mod.get_global_vars()}:
        return None
    held = (mod["main"].attrs or {}).get(ROUNDING)
    return None if held is None else str(held)


def is_quantised(mod: tvm.IRModule) -> bool:
    """Return whether ``main`` converts between stored integers and real numbers."""
    if "main" not in {name.name_hint for name in mod.get_global_vars()}:
        return False
    return any(
        compat.is_call(b.value)
        and compat.op_name(b.value) in ("relax.quantize", "relax.dequantize")
        for block in mod["main"].body.blocks
        for b in block.bindings
    )


def kept_float(mod: tvm.IRModule) -> tuple[str, ...]:
    """Return the operators that ``SerenityQuantize`` left in float, with reasons."""
    attrs = mod.attrs or {}
    return tuple(str(line) for line in attrs[KEPT]) if KEPT in attrs else ()


def _kept_float(mod: tvm.IRModule, reasons: dict[str, str] | None) -> list[str]:
    """Return a line for each remaining float operator, from inputs to outputs.

    ``reasons``: by new variable; None if the file itself has the operator in float.
    """
    lines = []
    for block in mod["main"].body.blocks:
        for binding in block.bindings:
            call = binding.value
            if not compat.is_call(call):
                continue
            if not compat.is_high_level(call) and compat.called_kernel(call) is None:
                continue
            name = name_of(call)
            if name in ("quantize", "dequantize") or not _is_float(binding.var.ty):
                continue
            if reasons is None:
                if not is_mark(call):
                    lines.append(f"{name} {label(binding.var)!r}: {IN_FILE}")
                continue
            reason = reasons.get(binding.var.name) or _reason(mod, binding.var, reasons)
            lines.append(f"{name} {label(binding.var)!r}: {reason}")
    return lines


def _is_float(ty: relax.Type) -> bool:
    return bool(compat.is_tensor(ty)) and compat.dtype_name(ty).startswith("float")


def _reason(mod: tvm.IRModule, start: relax.Var, reasons: dict[str, str]) -> str:
    """Return the reason of the ``quantize`` that depends on ``start``."""
    reached: set[Any] = {start}
    for block in mod["main"].body.blocks:
        for binding in block.bindings:
            if reached & set(variables(binding.value)):
                if binding.var.name in reasons:
                    return reasons[binding.var.name]
                reached.add(binding.var)
    return "its result is not quantised"
