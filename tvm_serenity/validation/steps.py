"""Properties of kernels that checks use: the number of loop steps and the inputs' zero point."""

import json
from typing import Any

import tvm
from tvm import s_tir, tirx

from tvm_serenity.kernels.nodes import parts
from tvm_serenity.kernels.spec import SPEC

_ZEROS = ("input_zero", "zero_point", "zero_points")


def steps_of(kernel: tirx.PrimFunc) -> int:
    """Return the innermost loop steps of all stages of ``kernel`` together."""
    total = 0
    for block in parts(kernel.body, s_tir.SBlock):
        steps = 1
        for variable in block.iter_vars:
            steps *= int(getattr(variable.dom.extent, "value", 1))
        total += steps
    return total


def reads_table(kernel: tirx.PrimFunc) -> bool:
    """Return whether ``kernel`` reads a buffer at an index that it loads from another buffer."""
    loads = parts(kernel.body, tvm.ir.expr.TensorLoad)
    return any(parts(index, tvm.ir.expr.TensorLoad) for load in loads for index in load.indices)


def zero_of(kernel: tirx.PrimFunc) -> int:
    """Return the first zero point in the kernel's spec, 0 if there is none."""
    text = (kernel.attrs or {}).get(SPEC)
    found = [] if text is None else _zeros(json.loads(str(text)))
    return found[0] if found else 0


def _zeros(value: Any) -> list[int]:
    if isinstance(value, list):
        return [zero for part in value for zero in _zeros(part)]
    if not isinstance(value, dict):
        return []
    own = [v for k, v in value.items() if k in _ZEROS]
    flat = [z for v in own for z in (v if isinstance(v, list) else [v]) if isinstance(z, int)]
    return flat + [zero for k, v in value.items() if k not in _ZEROS for zero in _zeros(v)]
