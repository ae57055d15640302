"""Conversions of elementwise ONNX operators to Relax operators.

TVM writes them as kernels, or as reductions of stacked copies. Relax operators can be fused,
scheduled without copies, and converted to integers. A converter returns None for a form that is
left to TVM.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_serenity.frontends.relax._onnx_resize import RESIZES
from tvm_serenity.frontends.relax._onnx_values import Attributes, constant


def clip(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: Attributes, opset: int) -> Any:
    """Return Clip of float32 between constants; the lower limit applies first, as in ONNX."""
    x = inputs[0]
    if str(x.ty.dtype.dtype) != "float32":
        return None
    if opset < 11:
        limits = [attributes.get("min", -np.inf), attributes.get("max", np.inf)]
    else:
        found = [_number(inputs, 1, -np.inf), _number(inputs, 2, np.inf)]
        if None in found:
            return None
        limits = found
    low, high = (float(np.float32(limit)) for limit in limits)
    if low == 0 and high == np.inf:
        return relax.op.nn.relu(x)
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        return None
    return relax.op.clip(x, low, high)


def pad(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: Attributes, opset: int) -> Any:
    """Return Pad by a constant border on all axes; negative padding is left to TVM."""
    axes = inputs[3] if len(inputs) > 3 else None
    if attributes.get("mode", b"constant") != b"constant" or axes is not None:
        return None
    if opset < 11:
        amounts, value = list(attributes["pads"]), attributes.get("value", 0.0)
    else:
        given, value = constant(inputs, 1), _number(inputs, 2, 0.0)
        if given is None or value is None:
            return None
        amounts = [int(amount) for amount in given.reshape(-1)]
    rank = len(inputs[0].ty.shape)
    if min(amounts, default=0) < 0 or len(amounts) != 2 * rank or not np.isfinite(value):
        return None
    pairs = [amounts[axis + side] for axis in range(rank) for side in (0, rank)]
    return relax.op.nn.pad(inputs[0], pairs, "constant", float(value))


def cut(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: Attributes, opset: int) -> Any:
    """Return Slice before opset 10, with bounds as attributes, which TVM lacks."""
    if opset >= 10:
        return None
    starts, ends = (list(attributes[name]) for name in ("starts", "ends"))
    axes = list(attributes.get("axes", range(len(starts))))
    return relax.op.strided_slice(inputs[0], axes, starts, ends)


def _pairwise(
    operator: Callable[[relax.Expr, relax.Expr], Any],
    bb: relax.BlockBuilder,
    inputs: Sequence[Any],
    _: Attributes,
    opset: int,
) -> Any:
    """Return an operator on any number of inputs, applied pairwise."""
    if all(isinstance(value, tvm.ir.GenericConst) for value in inputs):
        return None
    return reduce(lambda left, right: operator(bb.normalize(left), right), inputs)


def _number(inputs: Sequence[Any], index: int, default: float) -> float | None:
    """Return an input's number, ``default`` if it is omitted, None if it is computed."""
    if len(inputs) <= index or inputs[index] is None:
        return default
    found = constant(inputs, index)
    return None if found is None or found.size != 1 else float(found.reshape(())[()])


ELEMENTS: dict[str, Callable[[Any, Sequence[Any], Attributes, int], Any]] = {
    **RESIZES,
    "Clip": clip,
    "Max": partial(_pairwise, relax.op.maximum),
    "Min": partial(_pairwise, relax.op.minimum),
    "Pad": pad,
    "Slice": cut,
    "Sum": partial(_pairwise, relax.op.add),
}
"""Converters by operator."""
