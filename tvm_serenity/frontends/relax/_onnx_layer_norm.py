"""ONNX's LayerNormalization with all its results and broadcast scales."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import relax

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends.relax._onnx_values import Attributes, dtype_of, shape_of


def layer_norm(
    bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: Attributes, opset: int
) -> Any:
    """Return the normalised input, its mean and its reciprocal standard deviation.

    The first is ``(x - mean) / sqrt(variance + epsilon)`` times a scale, plus a bias.
    """
    x, scale, bias = (*inputs, None)[:3]
    shape, dtype = shape_of(x), dtype_of(x)
    axis, epsilon = attributes.get("axis", -1) % len(shape), attributes.get("epsilon", 1e-5)
    axes, inner = list(range(axis, len(shape))), shape[axis:]
    if all(part is None or shape_of(part) == inner for part in (scale, bias)):
        zeros = relax.const(np.zeros(inner, dtype))
        made = relax.op.nn.layer_norm(x, scale, zeros if bias is None else bias, axes, epsilon)
    else:
        ones, zeros = (relax.const(np.full(inner, value, dtype)) for value in (1, 0))
        plain = bb.emit(relax.op.nn.layer_norm(x, ones, zeros, axes, epsilon))
        made = relax.op.multiply(plain, scale)
        if bias is not None:
            made = relax.op.add(bb.emit(made), bias)
    made = bb.emit(made)
    if shape_of(made) != shape:
        raise UnsupportedError(
            "its scale has a larger shape than its input, which is not supported"
        )
    if attributes["tvm_custom"]["num_outputs"] == 1:
        return made
    mean = bb.emit(relax.op.mean(x, axes, keepdims=True))
    spread = bb.emit(relax.op.variance(x, axes, keepdims=True))
    inverse = bb.emit(relax.op.rsqrt(bb.emit(relax.op.add(spread, relax.const(epsilon, dtype)))))
    return relax.Tuple([made, mean, inverse])
