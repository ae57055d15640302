"""SOFTMAX along the last axis: by two tables in 16 bits, in gemmlowp's fixed point in 8 bits."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.records import RealSoftmax
from tvm_serenity.operators.clamped import clamped
from tvm_serenity.operators.extents import as_the_first
from tvm_serenity.operators.functions import between
from tvm_serenity.operators.needs import Need, RowSources, Seen, aligned_axis, on_elements
from tvm_serenity.operators.parts import (
    IntegerMeaning,
    PlainMeaning,
    Rows,
    ShapeMeaning,
    Storage,
)
from tvm_serenity.operators.record import Operator, no_scratch
from tvm_serenity.operators.sample_bounds import SampledLine, check_samples, sample_bounds
from tvm_serenity.operators.scene import EIGHT, Array, Calls, Expr, Scene, Stored, flat, reshaped
from tvm_serenity.operators.table_bounds import Real, check_exponentials, check_real_exponentials
from tvm_serenity.quantize import lookups, tables
from tvm_serenity.quantize.fixed import divided_by_power, high_product, multiplier, scaled
from tvm_serenity.quantize.gemmlowp import exp_on_negative, leading_zeros, reciprocal

_BETA = 0
_STEPS = {"int16": 1 << 16, "int8": 256, "uint8": 256}
"""Reciprocal of the scale of an 8-bit input's result; that of 16 bits to 16 bits is 32768."""


@dataclass(frozen=True)
class Softmax:
    """Exponentials of ``beta`` times the input, divided by their sum.

    ``limits`` and ``rounding`` apply to the rounding "float", which has no fixed steps.
    """

    source: Stored
    result: Stored
    beta: float
    limits: tuple[int, int]
    rounding: str


def _read(scene: Scene) -> Softmax:
    (source,), result = scene.inputs(), scene.result()
    return softmax_of(Softmax(source, result, _beta(scene), result.params.limits, "tflite"))


def softmax_of(op: Softmax) -> Softmax:
    """Return ``op``; raise :class:`UnsupportedError` unless its result has LiteRT's scale."""
    source, result = op.source, op.result
    if op.rounding == "float" and {source.dtype, result.dtype} <= set(EIGHT):
        return op
    steps = _STEPS.get(result.dtype)
    wide = source.dtype == "int16"
    if steps is None or (wide and result.dtype != "int16"):
        raise UnsupportedError(
            f"LiteRT does not support SOFTMAX of {source.dtype} to {result.dtype}"
        )
    steps, least = (32768, 0) if wide else (steps, result.params.limits[0])
    if abs(result.scale * steps - 1) > 1e-3 or result.zero != least:
        raise UnsupportedError(
            f"SOFTMAX needs a result with scale 1/{steps}, not {result.scale:g}, and the "
            "least value as zero point"
        )
    if (wide and source.zero) or op.limits != result.params.limits:
        raise UnsupportedError(
            "SOFTMAX of int16 with a zero point, or with a fused activation, is not supported"
        )
    return op


def _compute(op: Softmax, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels import normalise, pointwise

    source = op.source
    shape = source.shape if len(source.shape) > 1 else flat(source.shape)
    given = reshaped(values[0], source.shape, shape, calls)
    if op.rounding == "float" and source.dtype in EIGHT:
        real = RealSoftmax(shape, source.dtype, op.result.params, *op.limits)
        powers = tables.exponentials(source.scale * op.beta)
        check_real_exponentials("SOFTMAX", powers, source.scale * op.beta)
        made = calls.kernel("q_softmax", pointwise.real_softmax(real), given, powers)
    elif source.dtype == "int16":
        scale = float(np.float32(source.scale) * np.float32(op.beta))
        kernel = normalise.softmax16(shape, scale)
        made = calls.kernel("q_softmax", kernel, given, *_samples())
    else:
        table = tables.without_tail(tables.softmax(source.scale, op.beta).exponentials)
        check_exponentials("SOFTMAX", table, source.scale * op.beta)
        kernel = pointwise.softmax(shape, source.dtype, op.result.dtype, len(table))
        made = calls.kernel("q_softmax", kernel, given, table)
    return reshaped(made, shape, source.shape, calls)


def _samples() -> tuple[lookups.Array, lookups.Array]:
    """Return 513 samples each of exp over -10..0 and of 1 / (1 + x) over 0..1."""
    powers, inverses = (
        SampledLine(10.0 / 65535, 2.0 / 65535, 32767),
        SampledLine(1.0 / 65535, 2.0 / 65535, -32768),
    )
    return _sampled(np.exp, powers), _sampled(lambda x: 1.0 / (1.0 + x), inverses)


def _sampled(of: Real, line: SampledLine) -> Array:
    """Return samples of a function that LiteRT evaluates in float64."""
    scales, zeros = (line.source, line.result), (line.zero_point, 0)
    made = lookups.lookup16(of, scales, zeros, np.float64)
    return check_samples("SOFTMAX", made, sample_bounds([of], line))


def _reference(op: Softmax, x: Array) -> Array:
    """``reference_ops::Softmax``, and ``SoftmaxInt16``."""
    below = x.astype(np.int64) - x.max(-1, keepdims=True)
    return _of_16_bits(op, below) if op.source.dtype == "int16" else _of_8_bits(op, below)


def _of_8_bits(op: Softmax, below: Array) -> Array:
    """Return exponentials in Q0.31 times the reciprocal of their sum in Q12.19."""
    made, shift = differences(below, op.source.scale * op.beta)
    counts = below >= least_difference(shift)
    power = np.where(counts, exp_on_negative(np.where(counts, made, 0)), 0)
    total = divided_by_power(power, 12).sum(-1, keepdims=True)
    inverse, over = reciprocal(total, 12)
    bits = np.iinfo(op.result.dtype).bits
    share = divided_by_power(high_product(inverse, power), over + 31 - bits)
    return clamped(np.where(counts, share, 0), op.result)


def _of_16_bits(op: Softmax, below: Array) -> Array:
    """Return the softmax by two tables of 513 samples: exp over -10..0, 1 / (1 + x) over 0..1."""
    powers, inverses = _samples()
    m = multiplier(float(np.float32(op.source.scale) * np.float32(op.beta)) / (10.0 / 65535.0))
    at = np.clip(scaled(below, m.value[0], m.shift[0]) + 32767, -(1 << 15), (1 << 15) - 1)
    power = between(at, powers).astype(np.int64)
    total = power.sum(-1, keepdims=True)
    head = leading_zeros(total)
    whole = ((total << (head - 1)) + (1 << 13)) >> 14
    inverse = between(np.clip(whole - 98304, -(1 << 15), (1 << 15) - 1), inverses)
    right = 31 - head
    share = (power * inverse + (np.int64(1) << (right - 1))) >> right
    return clamped(np.clip(share, 0, None), op.result)


def differences(below: Array, scale: float) -> tuple[Array, int]:
    """Return differences in steps of ``scale`` in Q5.26, and the shift of their multiplier."""
    m = multiplier(min(scale * (1 << 26), float((1 << 31) - 1)))
    return scaled(below, m.value[0], m.shift[0]), m.shift[0]


def least_difference(shift: int) -> int:
    """Return the least difference whose exponential counts (``CalculateInputRadius``)."""
    return -math.floor(31 * float(1 << 26) / 2.0**shift)


def _beta(scene: Scene) -> float:
    return scene.options.f32(_BETA) if scene.has_options else 1.0


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return the softmax of ``beta`` times the input."""
    value, beta = values[0], _beta(scene)
    if beta != 1.0:
        value = calls.apply("multiply", value, np.asarray(beta, scene.dtype(0)))
    return calls.apply("nn.softmax", value, axis=-1)


def _row_axis(op: RowSources) -> int | None:
    """Return the axis of rows, None if each row has one element of each distribution."""
    axis = aligned_axis(op)
    return None if axis == len(op.made) - 1 else axis


def _by_rows(op: Seen) -> tuple[Need | None, ...]:
    if op.axis is None or _row_axis(op) != op.axis:
        raise UnsupportedError(f"{op.kind} along the rows is not computed row by row")
    return on_elements(op)


OPERATORS = (
    Operator(
        kinds=("SOFTMAX",),
        shapes=ShapeMeaning(result=as_the_first),
        storage=Storage(scratch=no_scratch),
        rows=Rows(needs=_by_rows, axis=_row_axis),
        numbers=PlainMeaning(form=_plain),
        integers=IntegerMeaning(read=_read, compute=_compute, reference=_reference),
    ),
)
