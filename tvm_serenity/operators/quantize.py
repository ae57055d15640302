"""QUANTIZE, DEQUANTIZE and CAST: the same elements in another type or scale."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.records import Requantise
from tvm_serenity.operators.clamped import clamped
from tvm_serenity.operators.functions import looked_up
from tvm_serenity.operators.needs import aligned_axis, on_elements
from tvm_serenity.operators.parts import Elements, IntegerMeaning, PlainMeaning, Rows, Storage
from tvm_serenity.operators.record import Operator, no_scratch
from tvm_serenity.operators.scene import ALL, EIGHT, Array, Calls, Expr, Scene, Stored
from tvm_serenity.operators.table_bounds import check_table, nearest, scaled_by
from tvm_serenity.quantize import tables
from tvm_serenity.quantize.fixed import multiplier, scaled

TABLE_ELEMENTS = 1024
"""Smaller tensors are rescaled by code, because a table of 256 bytes would be larger."""
_TYPES = (*ALL, "int32")


@dataclass(frozen=True)
class Rescaling:
    """A conversion of stored values to another scale."""

    source: Stored
    result: Stored
    limits: tuple[int, int]
    rounding: str


def _read(scene: Scene) -> Rescaling | None:
    """Return the rescaling of integers; TVM's importer quantises floats itself."""
    if scene.dtype(0).startswith("float"):
        return None
    (source,), result = scene.inputs(), scene.result()
    if not {source.dtype, result.dtype} <= set(_TYPES):
        raise UnsupportedError(
            f"LiteRT does not support QUANTIZE of {source.dtype} to {result.dtype}"
        )
    return Rescaling(source, result, result.params.limits, scene.rounding)


def _compute(op: Rescaling, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels import pointwise

    source, result, limits = op.source, op.result, op.limits
    if source.alike(result) and limits == result.params.limits:
        return values[0]
    few = int(np.prod(source.shape)) < TABLE_ELEMENTS and op.rounding == "tflite"
    if source.dtype in EIGHT and result.dtype in EIGHT and not few:
        table = _table(op)
        return looked_up("q_table", source, table, values[0], calls)
    m = multiplier(source.scale / result.scale)
    finish = Requantise(m, result.zero, *limits, result.dtype, op.rounding)
    return calls.kernel(
        "q_rescale", pointwise.rescale(source.shape, source.params, finish), *values
    )


def _table(op: Rescaling) -> Array:
    """Return the verified results of all 8-bit values."""
    source, result = op.source.params, op.result.params
    made = tables.rescaled(source, result, *op.limits, op.rounding)
    ratio = source.scale / result.scale
    bounds = scaled_by((ratio, ratio), source, result)
    if op.rounding != "tflite":
        bounds = nearest(lambda x: x, source, result)
    return check_table("QUANTIZE", made, source, bounds.limited(*op.limits))


def _reference(op: Rescaling, x: Array) -> Array:
    """``Requantize``."""
    m = multiplier(op.source.scale / op.result.scale)
    centred = x.astype(np.int64) - op.source.zero
    return clamped(scaled(centred, m.value[0], m.shift[0]), op.result, op.limits)


def _dequantised_int32(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr | None:
    """Return floats rounded to int32, which TVM's importer lacks."""
    made = scene.results[0]
    if made.dtype != "int32" or made.params is None:
        return None
    scale, zero = np.asarray(made.params.scale, np.float32), made.params.zero_point
    steps = calls.apply("round", calls.apply("divide", calls.real(0, values[0]), scale))
    return calls.apply("add", calls.apply("astype", steps, "int32"), np.asarray(zero, np.int32))


def _real(_scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """DEQUANTIZE, also of float16: the file requests this conversion to float."""
    return calls.apply("astype", calls.real(0, values[0]), "float32")


def _cast(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """CAST to the type of the result, whatever its options state."""
    return calls.apply("astype", values[0], scene.results[0].dtype)


OPERATORS = (
    Operator(
        kinds=("QUANTIZE",),
        relax=("quantize",),
        relay=("fixed_point_multiply", "qnn.quantize", "qnn.requantize"),
        rows=Rows(needs=on_elements, axis=aligned_axis),
        storage=Storage(scratch=no_scratch),
        numbers=PlainMeaning(form=_dequantised_int32, stored=True),
        integers=IntegerMeaning(read=_read, compute=_compute, reference=_reference, in_float=True),
    ),
    Operator(
        kinds=("DEQUANTIZE",),
        relax=("dequantize",),
        relay=("qnn.dequantize",),
        rows=Rows(needs=on_elements, axis=aligned_axis),
        elements=Elements(plain_cheap=True),
        storage=Storage(scratch=no_scratch),
        numbers=PlainMeaning(form=_real, stored=True),
    ),
    Operator(
        kinds=("CAST",),
        relax=("astype",),
        relay=("cast",),
        rows=Rows(needs=on_elements, axis=aligned_axis),
        elements=Elements(plain_cheap=True),
        numbers=PlainMeaning(form=_cast, known=lambda values, _options: values[0]),
    ),
)
