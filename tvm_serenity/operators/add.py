"""ADD and SUB: the sum or the difference of two tensors.

Operands are shifted left, rescaled to twice the larger scale, and added. 16-bit operands whose
scales are powers of two are only shifted, if the file asks for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.records import Pair, Sum
from tvm_serenity.operators.pairs import centred, read_pair, stored
from tvm_serenity.operators.parts import IntegerMeaning
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import ALL, Array, Calls, Expr, Scene
from tvm_serenity.quantize.fixed import Multiplier, divided_by_power, multiplier, scaled

_ACTIVATION, _POWERS = 0, 1


@dataclass(frozen=True)
class SumOfPowers:
    """A 16-bit sum of operands shifted right by ``shifts``; ``minus``: their difference."""

    pair: Pair
    shifts: tuple[int, int]
    minus: bool


def _read(scene: Scene) -> Sum | SumOfPowers:
    pair, minus = read_pair(scene, ALL, _ACTIVATION), scene.kind == "SUB"
    wide = pair.result.dtype == "int16"
    shifts = _power_shifts(pair) if wide and scene.options.u8(_POWERS, 1) else None
    if shifts is None:
        return sum_of(pair, minus)
    if min(shifts) < 0 or all(shifts):
        raise UnsupportedError(
            f"{scene.kind} of int16 needs scales that are powers of two, with a result scale "
            "no smaller than the operands'"
        )
    return SumOfPowers(pair, shifts, minus)


def sum_of(pair: Pair, minus: bool) -> Sum:
    """Return a sum in twice the larger scale; a negative real multiplier subtracts."""
    shift = 15 if pair.result.dtype == "int16" else 20
    first, second = (source.scale for source in pair.sources)
    twice = 2 * max(first, second)
    left, right = multiplier(first / twice), multiplier(second / twice)
    if minus:
        right = Multiplier(right.value, right.shift, (-right.real[0],))
    return Sum(pair, left, right, multiplier(twice / ((1 << shift) * pair.result.scale)), shift)


def _power_shifts(pair: Pair) -> tuple[int, int] | None:
    """Return the right shifts of the operands; None unless all scales are powers of two."""
    params = (*pair.sources, pair.result)
    logs = [float(np.log2(np.float32(p.scale))) for p in params]
    if any(abs(log - round(log)) >= 1e-3 for log in logs) or any(p.zero_point for p in params):
        return None
    first, second, made = (round(log) for log in logs)
    return made - first, made - second


def _compute(op: Sum | SumOfPowers, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels import fixed_pairs, pointwise

    if isinstance(op, SumOfPowers):
        kernel = fixed_pairs.sum_of_powers(op.pair, op.shifts, op.minus)
    else:
        kernel = pointwise.add(op)
    return calls.kernel("q_add", kernel, *values)


def _reference(op: Sum | SumOfPowers, *arrays: Array) -> Array:
    a, b = centred(op.pair, arrays)
    if isinstance(op, SumOfPowers):
        first, second = divided_by_power(a, op.shifts[0]), divided_by_power(b, op.shifts[1])
        return stored(op.pair, first - second if op.minus else first + second)
    first = scaled(a << op.shift, op.left.value[0], op.left.shift[0])
    second = scaled(b << op.shift, op.right.value[0], op.right.shift[0])
    total = first - second if op.right.real[0] < 0 else first + second
    return stored(op.pair, scaled(total, op.out.value[0], op.out.shift[0]))


OPERATORS = (
    replace(
        elementwise(
            "ADD",
            "Add",
            relax="add",
            relay="add nn.bias_add",
            real=np.add,
            activation=_ACTIVATION,
            plain_cheap=True,
            adds=True,
            free=True,
        ),
        integers=IntegerMeaning(read=_read, compute=_compute, reference=_reference, in_float=True),
    ),
    replace(
        elementwise(
            "SUB",
            "Sub",
            relax="subtract",
            relay="subtract",
            real=np.subtract,
            activation=_ACTIVATION,
            plain_cheap=True,
            free=True,
        ),
        integers=IntegerMeaning(read=_read, compute=_compute, reference=_reference, in_float=True),
    ),
    elementwise("Sum", adds=True),
)
