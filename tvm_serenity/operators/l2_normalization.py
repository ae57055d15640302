"""L2_NORMALIZATION of 8-bit tensors: rows of length 1, in steps of 1/128."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.clamped import clamped
from tvm_serenity.operators.extents import as_the_first
from tvm_serenity.operators.parts import IntegerMeaning, PlainMeaning, ShapeMeaning
from tvm_serenity.operators.plain import activated
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import EIGHT, Array, Calls, Expr, Scene, Stored, flat
from tvm_serenity.quantize.fixed import scaled
from tvm_serenity.quantize.lookups import inverse_root_multiplier

_ACTIVATION = 0


@dataclass(frozen=True)
class Normalisation:
    """A normalisation along the last axis."""

    source: Stored
    result: Stored


def _read(scene: Scene) -> Normalisation:
    (source,), result = scene.inputs(), scene.result()
    scene.only(EIGHT, source, result)
    if result.scale != 1 / 128 or result.zero != result.params.limits[0] + 128:
        raise UnsupportedError(
            f"L2_NORMALIZATION needs a result with scale 1/128, not {result.scale:g}, and the "
            "zero point in the middle"
        )
    return Normalisation(source, result)


def _compute(op: Normalisation, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels import normalise

    source, (rows, columns) = op.source, flat(op.source.shape)
    kernel = normalise.l2_normalised(rows, columns, source.dtype, source.zero)
    made = calls.kernel("q_l2", kernel, calls.apply("reshape", values[0], (rows, columns)))
    return calls.apply("reshape", made, source.shape)


def _reference(op: Normalisation, x: Array) -> Array:
    """``L2Normalization``: uint8 multiplies by 128 first; int8 includes it in the shift."""
    centred = x.astype(np.int64) - op.source.zero
    made = np.empty_like(centred)
    for row in np.ndindex(centred.shape[:-1]):
        value, shift = inverse_root_multiplier(int(np.square(centred[row]).sum()))
        if op.source.dtype == "uint8":
            made[row] = scaled(centred[row] * 128, value, shift)
        else:
            made[row] = scaled(centred[row], value, shift + 7)
    return clamped(made, op.result)


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return the rows divided by their length, which is at least 1e-6."""
    (x,) = values
    total = calls.apply("sum", calls.apply("multiply", x, x), axis=[-1], keepdims=True)
    least = np.asarray(1e-6, np.float32)
    length = calls.apply("maximum", calls.apply("sqrt", total), least)
    return activated(calls, calls.apply("divide", x, length), scene.options.u8(_ACTIVATION))


OPERATORS = (
    Operator(
        kinds=("L2_NORMALIZATION",),
        shapes=ShapeMeaning(result=as_the_first),
        numbers=PlainMeaning(form=_plain),
        integers=IntegerMeaning(read=_read, compute=_compute, reference=_reference),
    ),
)
