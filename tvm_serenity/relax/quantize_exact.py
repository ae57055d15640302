"""The check of ``.tflite`` modules, whose quantised operators the importer reads as integers.

Only numbers that the file computes in float remain to be quantised: the importer marks the file's
own dequantisation by a cast to float32. A ``dequantize`` without that mark belongs to a quantised
operator that was imported in float, which is refused.
"""

from collections.abc import Mapping
from typing import Any

from tvm import relax

from tvm_serenity import compat
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.relax.quantize_read import label, variables


def check_exact(function: relax.Function, operators: Mapping[str, str]) -> None:
    """Raise for the first quantised operator that ``function`` computes in float.

    ``operators``: the display names of the variables' operators.
    """
    bindings = [b for block in function.body.blocks for b in block.bindings]
    marked = {v for b in bindings if is_mark(b.value) for v in variables(b.value)}
    for binding in bindings:
        call = binding.value
        if not compat.is_call(call) or binding.var in marked:
            continue
        if compat.op_name(call) == "relax.dequantize":
            name = _operator(binding.var, bindings, operators)
            raise UnsupportedError(
                f"{name}: it was imported in float (--quantized off, or integers='off')"
            )


def is_mark(call: relax.Expr) -> bool:
    """Return whether a call is a cast to its argument's type: the importer's mark."""
    if not compat.is_call(call) or compat.op_name(call) != "relax.astype":
        return False
    return bool(compat.dtype_name(call.args[0].ty) == compat.dtype_name(call.ty))


def _operator(var: relax.Var, bindings: list[Any], operators: Mapping[str, str]) -> str:
    """Return the file's name of the operator that computes ``var``."""
    reached = {var}
    for binding in bindings:
        if binding.var in reached or reached & set(variables(binding.value)):
            reached.add(binding.var)
            if binding.var.name in operators:
                return operators[binding.var.name]
    return f"the operator of {label(var)!r}"
