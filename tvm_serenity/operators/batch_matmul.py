"""BATCH_MATMUL: products of two variable matrices, with broadcast batches."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.dynamic_records import BatchSteps, DynamicProduct
from tvm_serenity.kernels.records import BatchMatmul, Pair
from tvm_serenity.operators import dynamic_range as dynamic
from tvm_serenity.operators.needs import Need, RowSources, Seen, rowwise
from tvm_serenity.operators.parts import IntegerMeaning, OnTheFly, PlainMeaning, Rows
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import EIGHT, SIGNED, Array, Calls, Expr, Scene
from tvm_serenity.quantize.fixed import scaled, scaled_wide

_ADJOINT_X, _ADJOINT_Y, _ASYMMETRIC = range(3)


def _read(scene: Scene) -> BatchMatmul:
    (first, second), result = scene.inputs(), scene.result()
    scene.only(SIGNED, first, result)
    scene.only(SIGNED if first.dtype == "int16" else ("int8",), second)
    if first.dtype == "int16":
        scene.symmetric(first, second, result)
    adjoint = (bool(scene.options.u8(_ADJOINT_X)), bool(scene.options.u8(_ADJOINT_Y)))
    shapes, sources = (first.shape, second.shape), (first.params, second.params)
    return BatchMatmul(shapes, adjoint, sources, result.params)


def matmul_of(pair: Pair) -> BatchMatmul:
    """Return the product of two tensors as matrices.

    LiteRT has kernels for int8 and int16; uint8 is computed as int8 with both operands shifted by
    128.
    """
    types = {params.dtype for params in (*pair.sources, pair.result)}
    if types != {"int16"} and not types <= set(EIGHT):
        raise UnsupportedError(f"BATCH_MATMUL of {' and '.join(sorted(types))} is not supported")
    if (pair.low, pair.high) != pair.result.limits:
        raise UnsupportedError("BATCH_MATMUL with a fused activation is not supported")
    if min(map(len, pair.shapes)) < 2:
        raise UnsupportedError("BATCH_MATMUL of a vector is not supported; reshape it to a matrix")
    return BatchMatmul(pair.shapes, (False, False), pair.sources, pair.result, pair.rounding)


def _compute(op: BatchMatmul, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.batch_matmul import batch_matmul

    return calls.kernel("q_matmul", batch_matmul(op), *values)


def _reference(op: BatchMatmul, *arrays: Array) -> Array:
    """``BatchMatMul``: 16-bit products are summed in 64 bits, with a 15-bit multiplier."""
    turned = []
    for array, source, flip in zip(arrays, op.sources, op.adjoint, strict=True):
        centred = array.astype(np.int64) - source.zero_point
        turned.append(np.swapaxes(centred, -1, -2) if flip else centred)
    total, result, m = np.matmul(*turned), op.result, op.multiplier
    round_ = scaled_wide if result.dtype == "int16" else scaled
    value = round_(total, m.value[0], m.shift[0])
    limited = np.clip(value + result.zero_point, *result.limits)
    return np.asarray(limited).astype(result.dtype)


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return the product with batches broadcast in both directions."""
    parts = []
    for operand, (value, field) in enumerate(zip(values, (_ADJOINT_X, _ADJOINT_Y), strict=True)):
        rank = len(scene.shape(operand))
        axes = [*range(rank - 2), rank - 1, rank - 2]
        flip = scene.options.u8(field)
        parts.append(calls.apply("permute_dims", value, axes) if flip else value)
    return calls.apply("matmul", *parts)


@dataclass(frozen=True, eq=False)
class ProductOnTheFly:
    """A float matrix times an 8-bit matrix; ``turned``: whether the first one is transposed."""

    spec: DynamicProduct
    turned: bool

    @property
    def steps(self) -> BatchSteps:
        """The quantisation of the rows of the first operand."""
        left = self.spec.shapes[0]
        return BatchSteps((int(np.prod(left[:-1])), left[-1]), self.spec.asymmetric)


def _read_dynamic(scene: Scene) -> ProductOnTheFly | None:
    held, options = scene.operands[1], scene.options
    if held is None or held.params is None or held.dtype != "int8" or held.params.zero_point:
        return None
    if scene.dtype(0) != "float32":
        return None
    if len(held.params.scales) != 1:
        raise UnsupportedError("int8 matrices with a scale per channel are not supported")
    left, right = scene.shape(0), held.shape
    turned = bool(options.u8(_ADJOINT_X))
    if turned:
        left = (*left[:-2], left[-1], left[-2])
    if sum(extent > 1 for extent in np.broadcast_shapes(left[:-2], right[:-2])) > 1:
        raise UnsupportedError(
            "BATCH_MATMUL with two batch dimensions is not supported, because LiteRT applies "
            "wrong scales"
        )
    adjoint, asymmetric = bool(options.u8(_ADJOINT_Y)), bool(options.u8(_ASYMMETRIC))
    spec = DynamicProduct((left, right), adjoint, held.params.scale, asymmetric)
    return ProductOnTheFly(spec, turned)


def _compute_dynamic(op: ProductOnTheFly, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.dynamic import product

    left, x = op.spec.shapes[0], values[0]
    if op.turned:
        x = calls.apply("permute_dims", x, [*range(len(left) - 2), len(left) - 1, len(left) - 2])
    stored, steps = dynamic.quantised(op.steps, calls.apply("reshape", x, op.steps.shape), calls)
    stored = calls.apply("reshape", stored, left)
    steps = calls.apply("reshape", steps, (*left[:-1], op.steps.steps_shape[1]))
    return calls.kernel("d_matmul", product(op.spec), stored, steps, values[1])


def _reference_dynamic(op: ProductOnTheFly, x: Array, y: Array) -> Array:
    """``EvalHybrid`` of batch_matmul.cc."""
    left, given = op.spec.shapes[0], np.swapaxes(x, -1, -2) if op.turned else x
    whole, scale = dynamic.quantised_reference(given.reshape(op.steps.shape), op.spec.asymmetric)
    other = np.swapaxes(y, -1, -2) if op.spec.adjoint else y
    total = np.matmul(whole.reshape(left), other.astype(np.int64)).astype(np.float32)
    return np.asarray(total * (scale * np.float32(op.spec.scale)).reshape(*left[:-1], 1))


def _row_axis(op: RowSources) -> int | None:
    """Return the axis of the result of the rows of the first operand, batches or its own rows."""
    if 0 not in op.operands or op.axes[0] is None:
        return None
    rank = len(op.made)
    axis = op.axes[0] + rank - len(op.shapes[0])
    own = rank - 1 if op.options.u8(_ADJOINT_X) else rank - 2
    if axis == own:
        return rank - 2
    return axis if axis < rank - 2 else None


def _by_rows(op: Seen) -> tuple[Need | None, ...]:
    """Return the rows that a row of the product needs: one, and the second operand completely.

    Batches need the same batch of both operands.
    """
    axis, rank = _row_axis(op), len(op.made)
    if axis is None or axis != op.axis or op.sources[0] != op.height:
        raise UnsupportedError(f"{op.kind} is computed row by row along rows of its first operand")
    needs: list[Need | None] = [rowwise(op.height, op.height)]
    if 1 in op.operands:
        other = op.axes[1]
        along = other is not None and other + rank - len(op.shapes[1]) == axis
        batches = along and axis < rank - 2 and op.sources[1] == op.height
        needs.append(rowwise(op.height, op.height) if batches else None)
    return tuple(needs)


OPERATORS = (
    Operator(
        kinds=("BATCH_MATMUL",),
        rows=Rows(needs=_by_rows, axis=_row_axis),
        numbers=PlainMeaning(form=_plain),
        integers=IntegerMeaning(
            read=_read,
            compute=_compute,
            reference=_reference,
            dynamic=OnTheFly(_read_dynamic, _compute_dynamic, _reference_dynamic),
        ),
    ),
)
