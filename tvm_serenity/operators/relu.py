"""RELU, RELU6, RELU_N1_TO_1 and RELU_0_TO_1: values clamped to two limits."""

import numpy as np

from tvm_serenity.operators.clamped import clamped
from tvm_serenity.operators.functions import Function, Widths, function
from tvm_serenity.operators.record import Operator, elementwise
from tvm_serenity.operators.scene import ALL, EIGHT, Array, Calls, Expr
from tvm_serenity.operators.table_bounds import EntryBounds, scaled_by
from tvm_serenity.quantize import lookups
from tvm_serenity.quantize.fixed import multiplier, scaled


def _between(facts: Operator, low: float, high: float | None) -> Operator:
    """Return the operator that clamps real values; RELU and RELU6 also exist in 16 bits."""

    def table(op: Function) -> Array:
        return lookups.clamped(op.source.params, op.result.params, low, high)

    def wide(op: Function, x: Expr, calls: Calls) -> Expr:
        from tvm_serenity.kernels import sixteen

        limits = lookups.limits(op.result.params, low, high)
        made = sixteen.rescaled(op.source.shape, op.source.params, op.result.params, *limits)
        return calls.kernel("q_relu", made, x)

    def wide_reference(op: Function, x: Array) -> Array:
        m = multiplier(float(np.float32(op.source.scale) / np.float32(op.result.scale)))
        total = scaled(x.astype(np.int64) - op.source.zero, m.value[0], m.shift[0])
        return clamped(total, op.result, lookups.limits(op.result.params, low, high))

    def bounds(op: Function) -> EntryBounds:
        source, result = op.source.params, op.result.params
        ratio = float(np.float32(source.scale) / np.float32(result.scale))
        made = scaled_by((ratio, ratio), source, result)
        return made.limited(*lookups.limits(result, low, high))

    dtypes = ALL if facts.kinds[0] in ("RELU", "RELU6") else EIGHT
    widths = Widths(
        table=table, bounds=bounds, wide=wide, wide_reference=wide_reference, dtypes=dtypes
    )
    return function(facts, widths)


OPERATORS = (
    _between(
        elementwise(
            "RELU",
            "Relu",
            relax="nn.relu",
            relay="nn.relu",
            real=lambda x: np.maximum(x, 0),
            cheap=True,
            free=True,
        ),
        0.0,
        None,
    ),
    _between(
        elementwise(
            "RELU6", relax="nn.relu6", real=lambda x: np.clip(x, 0, 6), cheap=True, free=True
        ),
        0.0,
        6.0,
    ),
    _between(elementwise("RELU_0_TO_1", cheap=True), 0.0, 1.0),
    _between(elementwise("RELU_N1_TO_1", cheap=True), -1.0, 1.0),
    elementwise("Clip", relax="clip", relay="clip", cheap=True),
)
