"""LEAKY_RELU: ``x`` if it is positive, otherwise ``alpha x``.

``reference_ops::QuantizeLeakyRelu``: each branch has its own multiplier.
"""

import numpy as np

from tvm_serenity.operators.clamped import clamped
from tvm_serenity.operators.functions import Function, Widths, function
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.scene import ALL, Array, Calls, Expr, Scene
from tvm_serenity.operators.table_bounds import EntryBounds, scaled_by
from tvm_serenity.quantize import tables
from tvm_serenity.quantize.fixed import multiplier, scaled

_ALPHA = 0


def _alpha(scene: Scene) -> float:
    return scene.options.f32(_ALPHA)


def _table(op: Function) -> Array:
    return tables.leaky_relu(op.parameter, op.source.params, op.result.params)


def _bounds(op: Function) -> EntryBounds:
    f32 = np.float32
    source, result = f32(op.source.scale), f32(op.result.scale)
    slope = float(source * f32(op.parameter) / result)
    return scaled_by((slope, float(source / result)), op.source.params, op.result.params)


def _wide(op: Function, x: Expr, calls: Calls) -> Expr:
    from tvm_serenity.kernels import sixteen

    kernel = sixteen.leaky_relu(op.source.shape, op.parameter, op.source.params, op.result.params)
    return calls.kernel("q_leaky_relu", kernel, x)


def _wide_reference(op: Function, x: Array) -> Array:
    f32 = np.float32
    centred = x.astype(np.int64) - op.source.zero
    slope = float(f32(op.source.scale) * f32(op.parameter) / f32(op.result.scale))
    keep = multiplier(float(f32(op.source.scale) / f32(op.result.scale)))
    below = multiplier(abs(slope))
    under = scaled(centred, below.value[0], below.shift[0]) * (1 if slope >= 0 else -1)
    over = scaled(centred, keep.value[0], keep.shift[0])
    return clamped(np.where(centred >= 0, over, under), op.result)


OPERATORS = (
    function(
        elementwise("LEAKY_RELU", "LeakyRelu", relax="nn.leakyrelu", relay="nn.leaky_relu"),
        Widths(
            table=_table,
            bounds=_bounds,
            wide=_wide,
            wide_reference=_wide_reference,
            dtypes=ALL,
            parameter=_alpha,
        ),
    ),
)
