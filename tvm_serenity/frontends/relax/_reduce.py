"""Operators of ``.tflite`` files that reduce axes, where TVM's importer has them wrong."""

from typing import Any

import numpy as np
import tflite
from tvm import relax

from tvm_serenity.errors import UnsupportedError


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


def convert_extreme_index(converter: Any, op: Any, largest: bool) -> Any:
    """Return the first position of the largest or the smallest value along an axis.

    TVM's own operator gives -1 where all values are the least of their type.
    """
    source, axis = converter.get_input_tensors(op)
    (result,) = converter.get_output_tensors(op)
    shape = [int(e) for e in converter.get_tensor_shape(source)]
    at = int(converter.get_tensor_value(axis).reshape(-1)[0]) % len(shape)
    expr = converter.get_tensor_expr(source)
    extreme = (relax.op.max if largest else relax.op.min)(expr, at, True)
    dtype = converter.get_tensor_type_str(result.tensor.Type())
    along = [shape[at] if i == at else 1 for i in range(len(shape))]
    places = relax.const(np.arange(shape[at], dtype=dtype).reshape(along), dtype)
    beyond = relax.const(np.asarray(shape[at], dtype), dtype)
    found = relax.op.where(relax.op.equal(expr, extreme), places, beyond)
    return relax.op.min(found, at)


def convert_range(converter: Any, op: Any) -> Any:
    """Return evenly spaced numbers, computed here as all of their limits are constants."""
    tensors = converter.get_input_tensors(op)
    if any(converter.has_expr(t.tensor_idx) for t in tensors):
        raise UnsupportedError("its limits are computed at run time")
    first, limit, step = (converter.get_tensor_value(t).reshape(())[()] for t in tensors)
    count = max(int(np.ceil(np.abs((limit - first) / step))), 0)
    made = (first + np.arange(count, dtype=first.dtype) * step).astype(first.dtype)
    return relax.const(made, str(made.dtype))


def convert_cumsum(converter: Any, op: Any) -> Any:
    """Return running sums; from the end where they are reversed."""
    source, axis = converter.get_input_tensors(op)
    options = tflite.CumsumOptions()
    options.Init(op.BuiltinOptions().Bytes, op.BuiltinOptions().Pos)
    rank = len(converter.get_tensor_shape(source))
    at = int(converter.get_tensor_value(axis).reshape(-1)[0]) % rank
    expr = converter.get_tensor_expr(source)
    if options.Reverse():
        expr = relax.op.flip(expr, at)
    expr = relax.op.cumsum(expr, at, exclusive=bool(options.Exclusive()))
    return relax.op.flip(expr, at) if options.Reverse() else expr
