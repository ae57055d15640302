"""CUMSUM: running sums along an axis, optionally reversed; in 8 bits as TFLM computes them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.kernels.records import Requantise
from tvm_serenity.operators.clamped import clamped
from tvm_serenity.operators.parts import IntegerMeaning, PlainMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.running import SHIFT, finish_of, wrapped
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene, Stored
from tvm_serenity.quantize.fixed import scaled

_AXIS = 1
_EXCLUSIVE, _REVERSE = 0, 1


@dataclass(frozen=True)
class SumsSoFar:
    """Running sums along ``axis``; ``exclusive``: without the element itself."""

    source: Stored
    result: Stored
    axis: int
    exclusive: bool
    reverse: bool
    finish: Requantise


def _read(scene: Scene) -> SumsSoFar:
    source, result = scene.stored(0), scene.result()
    scene.only(("int8",), source, result)
    axis = scene.constant(_AXIS)[0] % len(source.shape)
    exclusive, reverse = (bool(scene.options.u8(f)) for f in (_EXCLUSIVE, _REVERSE))
    finish = finish_of(source, result, scene.rounding)
    return SumsSoFar(source, result, axis, exclusive, reverse, finish)


def _compute(op: SumsSoFar, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.running import Running, sums_so_far

    zero = op.source.zero
    spec = Running(op.source.shape, op.source.dtype, zero, (op.axis,), op.finish)
    kernel = sums_so_far(spec, -zero, SHIFT, exclusive=op.exclusive, reverse=op.reverse)
    return calls.kernel("q_cumsum", kernel, values[0])


def _reference(op: SumsSoFar, x: Array, *_axis: Array) -> Array:
    """TFLM's sums start at the stored value 0, not at the zero point."""
    terms = x.astype(np.int64) - op.source.zero
    terms = np.flip(terms, op.axis) if op.reverse else terms
    total = np.cumsum(terms, op.axis) - (terms if op.exclusive else 0) - op.source.zero
    total = np.flip(total, op.axis) if op.reverse else total
    m = op.finish.multiplier
    return clamped(scaled(wrapped(total << SHIFT), m.value[0], m.shift[0]), op.result)


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    at = scene.constant(_AXIS)[0] % len(scene.shape(0))
    exclusive, value = bool(scene.options.u8(_EXCLUSIVE)), values[0]
    if not scene.options.u8(_REVERSE):
        return calls.apply("cumsum", value, at, exclusive=exclusive)
    turned = calls.apply("cumsum", calls.apply("flip", value, at), at, exclusive=exclusive)
    return calls.apply("flip", turned, at)


OPERATORS = (
    Operator(
        kinds=("CUMSUM",),
        numbers=PlainMeaning(form=_plain),
        integers=IntegerMeaning(read=_read, compute=_compute, reference=_reference),
    ),
)
