"""Operators on plain numbers that TVM's importer gets wrong or leaves out, as LiteRT has them.

``KINDS`` maps each kind to what makes it from its operator; tensors with scales are not plain
(``_scene``), except where a kind ignores scales.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import tflite
from tvm import relax

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends.relax import _recurrent
from tvm_serenity.operators.select import selection

_FLOATS = ("float32", "float16", "float64")


def _inputs(c: Any, op: Any) -> list[Any]:
    return [c.bb.normalize(c.get_tensor_expr(t)) for t in c.get_input_tensors(op)]


def _dtype(c: Any, op: Any, index: int = 0) -> str:
    return str(c.get_tensor_type_str(c.get_input_tensors(op)[index].tensor.Type()))


def _options(op: Any, table: Any) -> Any:
    read, given = table(), op.BuiltinOptions()
    if given is None:
        return None
    read.Init(given.Bytes, given.Pos)
    return read


def _activated(c: Any, op: Any, table: Any, value: Any) -> Any:
    options = _options(op, table)
    if options is None:
        return value
    return c.convert_fused_activation_function(value, options.FusedActivationFunction())


def _cast(c: Any, op: Any) -> Any:
    """CAST to the type of its output, whatever its options say."""
    (x,), (made,) = _inputs(c, op), c.get_output_tensors(op)
    return relax.op.astype(x, c.get_tensor_type_str(made.tensor.Type()))


def _square(c: Any, op: Any) -> Any:
    (x,) = _inputs(c, op)
    return relax.op.multiply(x, x)


def _squared_difference(c: Any, op: Any) -> Any:
    x, y = _inputs(c, op)
    difference = c.bb.emit(relax.op.subtract(x, y))
    return relax.op.multiply(difference, difference)


def _power(c: Any, op: Any) -> Any:
    if _dtype(c, op) not in _FLOATS:
        raise UnsupportedError(f"POW of {_dtype(c, op)}: only floats have it here")
    return relax.op.power(*_inputs(c, op))


def _select(kind: str) -> Callable[[Any, Any], Any]:
    def convert(c: Any, op: Any) -> Any:
        condition, first, second = _inputs(c, op)
        shapes = (tuple(int(e) for e in v.ty.shape) for v in (condition, first))
        found = selection(kind, *shapes)
        if found.condition is not None:
            condition = relax.op.reshape(condition, found.condition)
        return relax.op.where(condition, first, second)

    return convert


def _compared(operator: Any, booleans: bool) -> Callable[[Any, Any], Any]:
    """A comparison; booleans are compared as numbers, where LiteRT compares them."""

    def convert(c: Any, op: Any) -> Any:
        x, y = _inputs(c, op)
        if _dtype(c, op) != "bool":
            return operator(x, y)
        if not booleans:
            raise UnsupportedError("no such comparison of bool in LiteRT")
        return operator(relax.op.astype(x, "int8"), relax.op.astype(y, "int8"))

    return convert


def _whole(c: Any, x: Any, dtype: str) -> Any:
    """A divisor without zeros, which LiteRT refuses when it runs and which stop a processor."""
    one, zero = relax.const(1, dtype), relax.const(0, dtype)
    return c.bb.emit(relax.op.where(relax.op.equal(x, zero), one, x))


def _divide(c: Any, op: Any) -> Any:
    x, y = _inputs(c, op)
    if _dtype(c, op) not in _FLOATS:
        y = _whole(c, y, _dtype(c, op))
    return _activated(c, op, tflite.DivOptions, relax.op.divide(x, y))


def _floor_divide(c: Any, op: Any) -> Any:
    """FLOOR_DIV: of floats through float64, as LiteRT does it."""
    x, y = _inputs(c, op)
    dtype = _dtype(c, op)
    if dtype not in _FLOATS:
        return relax.op.floor_divide(x, _whole(c, y, dtype))
    ratio = relax.op.divide(relax.op.astype(x, "float64"), relax.op.astype(y, "float64"))
    return relax.op.astype(relax.op.floor(ratio), dtype)


def _floor_mod(c: Any, op: Any) -> Any:
    """FLOOR_MOD: of floats by the exact remainder, moved to the sign of the divisor."""
    x, y = _inputs(c, op)
    dtype = _dtype(c, op)
    if dtype not in _FLOATS:
        return relax.op.floor_mod(x, _whole(c, y, dtype))
    zero = relax.const(0, dtype)
    rest = c.bb.emit(relax.op.mod(x, y))
    signs = [relax.op.astype(relax.op.less(v, zero), "int8") for v in (rest, y)]
    moved = relax.op.logical_and(relax.op.not_equal(rest, zero), relax.op.not_equal(*signs))
    return relax.op.where(moved, relax.op.add(rest, y), rest)


def _softmax(c: Any, op: Any) -> Any:
    """SOFTMAX of ``beta`` times its input."""
    (x,), options = _inputs(c, op), _options(op, tflite.SoftmaxOptions)
    beta = 1.0 if options is None else float(options.Beta())
    if beta != 1.0:
        x = relax.op.multiply(x, relax.const(np.asarray(beta, _dtype(c, op))))
    return relax.op.nn.softmax(x, axis=-1)


def _gelu(c: Any, op: Any) -> Any:
    """GELU, by tanh if it says so."""
    (x,), options = _inputs(c, op), _options(op, tflite.GeluOptions)
    if options is not None and options.Approximate():
        return relax.op.nn.gelu_tanh(x)
    return relax.op.nn.gelu(x)


def _batch_matmul(c: Any, op: Any) -> Any:
    """BATCH_MATMUL with batches broadcast in both directions."""
    x, y = _inputs(c, op)
    options = _options(op, tflite.BatchMatMulOptions)
    adjoint = (False, False) if options is None else (options.AdjX(), options.AdjY())
    parts = [_turned(p) if flip else p for p, flip in zip((x, y), adjoint, strict=True)]
    return relax.op.matmul(*parts)


def _turned(x: Any) -> Any:
    rank = len(x.ty.shape)
    return relax.op.permute_dims(x, [*range(rank - 2), rank - 1, rank - 2])


def _l2_normalised(c: Any, op: Any) -> Any:
    """L2_NORMALIZATION of the last axis, whose length counts as at least 1e-6."""
    (x,) = _inputs(c, op)
    total = relax.op.sum(relax.op.multiply(x, x), axis=[-1], keepdims=True)
    length = relax.op.maximum(relax.op.sqrt(total), relax.const(np.float32(1e-6)))
    return _activated(c, op, tflite.L2NormOptions, relax.op.divide(x, length))


def _embedding(c: Any, op: Any) -> Any:
    """EMBEDDING_LOOKUP: rows of its second input by the indices of its first."""
    indices, rows = _inputs(c, op)
    return relax.op.take(rows, indices, axis=0, mode="clip")


def _local_response(_converter: Any, _op: Any) -> Any:
    raise UnsupportedError("LiteRT's reference and optimised kernels sum over different channels")


def _fake_quantised(c: Any, op: Any) -> Any:
    """FAKE_QUANT with its limits nudged in float32."""
    (x,), options = _inputs(c, op), _options(op, tflite.FakeQuantOptions)
    f32 = np.float32
    low, high = f32(options.Min()), f32(options.Max())
    least, most = f32(1 if options.NarrowRange() else 0), f32((1 << options.NumBits()) - 1)
    scale = (high - low) / (most - least)
    zero = least - low / scale
    zero = f32(np.clip(np.trunc(zero + f32(0.5)), least, most))
    first, last = (least - zero) * scale, (most - zero) * scale
    inside = relax.op.minimum(relax.op.maximum(x, relax.const(first)), relax.const(last))
    steps = relax.op.multiply(
        relax.op.subtract(inside, relax.const(first)), relax.const(f32(1) / scale)
    )
    whole = relax.op.multiply(relax.op.round(steps), relax.const(scale))
    return relax.op.add(whole, relax.const(first))


KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "UNIDIRECTIONAL_SEQUENCE_RNN": _recurrent.rnn,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _recurrent.lstm,
    "BIDIRECTIONAL_SEQUENCE_RNN": _recurrent.unsupported,
    "BIDIRECTIONAL_SEQUENCE_LSTM": _recurrent.unsupported,
    "LSTM": _recurrent.unsupported,
    "BATCH_MATMUL": _batch_matmul,
    "CAST": _cast,
    "DIV": _divide,
    "EMBEDDING_LOOKUP": _embedding,
    "EQUAL": _compared(relax.op.equal, True),
    "FAKE_QUANT": _fake_quantised,
    "FLOOR_DIV": _floor_divide,
    "FLOOR_MOD": _floor_mod,
    "GELU": _gelu,
    "GREATER": _compared(relax.op.greater, False),
    "GREATER_EQUAL": _compared(relax.op.greater_equal, False),
    "L2_NORMALIZATION": _l2_normalised,
    "LESS": _compared(relax.op.less, False),
    "LESS_EQUAL": _compared(relax.op.less_equal, False),
    "LOCAL_RESPONSE_NORMALIZATION": _local_response,
    "NOT_EQUAL": _compared(relax.op.not_equal, True),
    "POW": _power,
    "SELECT": _select("SELECT"),
    "SELECT_V2": _select("SELECT_V2"),
    "SOFTMAX": _softmax,
    "SQUARE": _square,
    "SQUARED_DIFFERENCE": _squared_difference,
}
"""What makes each kind where no tensor has a scale."""
