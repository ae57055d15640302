"""REDUCE_PROD: products along axes, rescaled at each step to stay within 32 bits.

Each of n factors is multiplied by the input's scale over the n-th root of the result's scale.
Products that still exceed 32 bits wrap.
"""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.records import Requantise
from tvm_serenity.operators.clamped import clamped
from tvm_serenity.operators.parts import IntegerMeaning, PlainMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.reductions import Reduction, read_reduction
from tvm_serenity.operators.running import wrapped
from tvm_serenity.operators.scene import SIGNED, Array, Calls, Expr, OptionsTable, Scene, reshaped
from tvm_serenity.quantize.fixed import Multiplier, multiplier, scaled_wide

_KEEP_DIMS = 0
_GREATEST = 14
"""The left shift from which on no bit is left to round."""


def _read(scene: Scene) -> Reduction:
    found = read_reduction(scene)
    scene.only(SIGNED, found.source, found.result)
    scene.symmetric(found.source, found.result)
    if _multiplier(found).shift[0] > _GREATEST:
        raise UnsupportedError(
            "REDUCE_PROD with a result scale that is much smaller than its input's is not supported"
        )
    return found


def _multiplier(op: Reduction) -> Multiplier:
    return multiplier(op.source.scale / op.result.scale ** (1.0 / op.count))


def _compute(op: Reduction, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.running import Running, product

    source, result = op.source, op.result
    finish = Requantise(_multiplier(op), result.zero, *op.limits, result.dtype)
    spec = Running(source.shape, source.dtype, source.zero, op.axes, finish)
    kept = tuple(1 if i in op.axes else e for i, e in enumerate(source.shape))
    return reshaped(calls.kernel("q_product", product(spec), values[0]), kept, result.shape, calls)


def _reference(op: Reduction, x: Array, *_axes: Array) -> Array:
    m, rank = _multiplier(op), len(op.source.shape)
    factors = x.astype(np.int64) - op.source.zero
    order = [*op.axes, *(i for i in range(rank) if i not in op.axes)]
    rows = factors.transpose(order).reshape(op.count, -1)
    total = rows[0]
    for row in rows[1:]:
        total = wrapped(scaled_wide(total * row, m.value[0], m.shift[0]))
    total = wrapped(scaled_wide(total, m.value[0], m.shift[0]))
    return clamped(wrapped(total + op.result.zero) - op.result.zero, op.result).reshape(
        op.result.shape
    )


def _known(values: Sequence[Array], options: OptionsTable) -> Array:
    axes = tuple(int(axis) for axis in values[1].reshape(-1))
    kept = bool(options.u8(_KEEP_DIMS))
    return np.asarray(np.prod(values[0], axes, values[0].dtype, keepdims=kept))


OPERATORS = (
    Operator(
        kinds=("REDUCE_PROD",),
        numbers=PlainMeaning(known=_known),
        integers=IntegerMeaning(read=_read, compute=_compute, reference=_reference),
    ),
)
