"""Operators of ``.tflite`` files that reduce axes, where TVM's importer has them wrong."""

from typing import Any

import numpy as np
from tvm import relax


def convert_mean(converter: Any, op: Any) -> Any:
    """Return the mean of integers without a scale: a 64-bit sum, divided and cut off."""
    source = converter.get_input_tensors(op)[0]
    dtype = converter.get_tensor_type_str(source.tensor.Type())
    if source.qnn_params is not None or dtype.startswith("float"):
        return converter._convert_reduce(relax.op.mean, op)

    def whole_mean(expr: Any, axis: Any, keepdims: bool) -> Any:
        shape = converter.get_tensor_shape(source)
        count = int(np.prod([shape[a] for a in {int(a) % len(shape) for a in axis}]))
        total = relax.op.sum(relax.op.astype(expr, "int64"), axis, keepdims)
        return relax.op.astype(relax.op.divide(total, relax.const(count, "int64")), dtype)

    return converter._convert_reduce(whole_mean, op)
