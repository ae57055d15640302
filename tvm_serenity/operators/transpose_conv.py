"""TRANSPOSE_CONV: each input adds its filter to a part of the result.

``out[y * stride + k - before] += in[y] * filter[k]`` along both axes; parts outside of the result
are dropped. The result has the shape of its tensor in the file. The operator's first input repeats
that shape, and may be an input of the model. Source: ``reference_integer_ops::TransposeConv``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.dynamic_records import DynamicTransposed
from tvm_serenity.kernels.records import TransposedConvolution
from tvm_serenity.operators import dynamic_transposed as dynamic
from tvm_serenity.operators.dynamic_range import bias_of, limits_of, weights_of
from tvm_serenity.operators.needs import (
    SAME,
    Need,
    Range,
    Seen,
    clipped,
    filter_rows,
    row_stride,
    rowwise,
)
from tvm_serenity.operators.parts import (
    IntegerMeaning,
    LayerFacts,
    OnTheFly,
    PlainMeaning,
    Rows,
    Sums,
)
from tvm_serenity.operators.plain import activated
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene, four
from tvm_serenity.operators.weighted import (
    WeightedLayer,
    filters_of,
    layer_of,
    narrow,
    requantised,
    summable,
)

_SHAPE, _WEIGHTS, _SOURCE, _BIAS = range(4)
_PADDING, _STRIDE_W, _STRIDE_H, _ACTIVATION = range(4)


@dataclass(frozen=True, eq=False)
class TransposeConv:
    """A transposed convolution.

    ``filters``: [height, width, input channels, output channels].
    """

    spec: TransposedConvolution
    filters: Array
    bias: npt.NDArray[np.int32]


def cut_before(made: int, size: int, stride: int, same: bool) -> int:
    """Return the number of results that are cut off before the first one of an axis."""
    reach = (-(-made // stride) - 1) * stride + size
    return max(reach - made, 0) // 2 if same else 0


def _read(scene: Scene) -> TransposeConv:
    source, result = scene.stored(_SOURCE), scene.result()
    summable(scene.kind, source, result)
    scene.symmetric(source, result)
    _check_shape(scene, result.shape)
    filters = filters_of(scene, _WEIGHTS, 0)
    strides, before = _places(scene, filters.data.shape[1:3])
    data = np.ascontiguousarray(np.transpose(filters.data, (1, 2, 3, 0)))
    layer = layer_of(scene, source, replace(filters, data=data), (_BIAS, _ACTIVATION))
    return transposed_of(layer, strides, before)


def transposed_of(
    layer: WeightedLayer, strides: tuple[int, int], before: tuple[int, int]
) -> TransposeConv:
    """Return the NHWC layer; ``before``: rows and columns cut off at the top and left.

    The filters of ``layer`` are [height, width, input channels, output channels].
    """
    source, filters = layer.source, layer.filters
    spec = TransposedConvolution(
        four(source.shape),
        four(layer.result.shape),
        source.dtype,
        four(filters.data.shape),
        str(filters.data.dtype),
        strides,
        before,
        source.zero,
        filters.zero,
        layer.finish(layer.multipliers(source.dtype == "uint8")),
    )
    return TransposeConv(spec, filters.data, narrow(layer.bias))


def _places(scene: Scene, sizes: Sequence[int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the strides, and the rows and columns dropped at the top and left."""
    options, made = scene.options, scene.results[0].shape
    strides = (options.i32(_STRIDE_H), options.i32(_STRIDE_W))
    if min(strides) < 1:
        raise UnsupportedError(f"its strides {strides} must be at least 1")
    same = options.u8(_PADDING) == SAME
    top, left = (cut_before(made[i + 1], sizes[i], strides[i], same) for i in (0, 1))
    return strides, (top, left)


def _read_floats(scene: Scene) -> dynamic.TransposedOnTheFly | None:
    found = weights_of(scene, _WEIGHTS, 0)
    if found is None or scene.dtype(_SOURCE) != "float32":
        return None
    (filters, scales), made = found, four(scene.results[0].shape)
    _check_shape(scene, made)
    data = np.ascontiguousarray(np.transpose(filters, (1, 2, 3, 0)))
    strides, before = _places(scene, data.shape[:2])
    bias, limits = bias_of(scene, _BIAS), limits_of(scene.options.u8(_ACTIVATION))
    shapes = (four(scene.shape(_SOURCE)), made, four(data.shape))
    spec = DynamicTransposed(*shapes, strides, before, scales.size, bias is not None, limits)
    return dynamic.checked(dynamic.TransposedOnTheFly(spec, data, scales, bias))


def _check_shape(scene: Scene, made: Sequence[int]) -> None:
    said = scene.operands[_SHAPE]
    if said is not None and said.values is not None and said.values.tolist() != list(made):
        raise UnsupportedError(
            f"its shape operand is {said.values.tolist()}, but its result has shape {list(made)}"
        )


def _compute(op: TransposeConv, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.transposed import transposed

    constants = (op.filters, op.bias, *op.spec.requantise.arrays())
    return calls.kernel("q_conv_transpose", transposed(op.spec), values[_SOURCE], *constants)


def _reference(op: TransposeConv, *arrays: Array) -> Array:
    spec, source = op.spec, arrays[_SOURCE].astype(np.int64) - op.spec.input_zero
    filters = op.filters.astype(np.int64) - spec.weight_zero
    n, height, width, channels = spec.output_shape
    _, rows, columns, _ = spec.input_shape
    (sy, sx), (top, left), (kh, kw, _, _) = spec.strides, spec.before, spec.weight_shape
    more = (rows * sy + kh + top + height, columns * sx + kw + left + width)
    total = np.zeros((n, *more, channels), np.int64)
    for ky in range(kh):
        for kx in range(kw):
            part = total[:, ky : ky + rows * sy : sy, kx : kx + columns * sx : sx]
            part += source @ filters[ky, kx]
    kept = total[:, top : top + height, left : left + width] + op.bias
    return requantised(kept, spec.requantise)


def _compute_floats(op: dynamic.TransposedOnTheFly, values: Sequence[Expr], calls: Calls) -> Expr:
    return dynamic.compute(op, values[_SOURCE], calls)


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return the layer in NCHW between transposes, in the size that the file states.

    TVM's importer asks for a layout that TVM cannot lower, derives the size from the filter, and
    drops the activation.
    """
    options, made = scene.options, scene.results[0].shape
    given, kernel = scene.shape(_SOURCE), scene.shape(_WEIGHTS)[1:3]
    strides = [options.i32(_STRIDE_H), options.i32(_STRIDE_W)]
    before, after, more = [], [], []
    for i in (0, 1):
        before.append(cut_before(made[i + 1], kernel[i], strides[i], options.u8(_PADDING) == SAME))
        rest = (given[i + 1] - 1) * strides[i] + kernel[i] - before[i] - made[i + 1]
        after.append(max(rest, 0))
        more.append(max(-rest, 0))
    value = calls.apply(
        "nn.conv2d_transpose",
        calls.apply("permute_dims", values[_SOURCE], [0, 3, 1, 2]),
        calls.apply("permute_dims", values[_WEIGHTS], [3, 0, 1, 2]),
        strides=strides,
        padding=[*before, *after],
        output_padding=more,
        data_layout="NCHW",
        kernel_layout="IOHW",
    )
    value = calls.apply("permute_dims", value, [0, 2, 3, 1])
    if len(values) > _BIAS and values[_BIAS] is not None:
        value = calls.apply("add", value, values[_BIAS])
    return activated(calls, value, options.u8(_ACTIVATION))


def _by_rows(op: Seen) -> tuple[Need, ...]:
    """Return the rows needed of each input.

    Row ``y`` needs inputs ``i`` with ``0 <= y + before - i * stride < size``.
    """
    size, stride = filter_rows(op, _WEIGHTS), row_stride(op)
    if stride < 1:
        raise UnsupportedError(f"its stride {stride} must be at least 1")
    before = cut_before(op.height, size, stride, op.options.u8(_PADDING) == SAME)
    *others, source = op.sources

    def rows(y: int) -> Range:
        at = y + before
        return clipped(-((size - 1 - at) // stride), at // stride + 1, source)

    need = tuple(rows(y) for y in range(op.height))
    return (*(rowwise(op.height, other) for other in others), need)


OPERATORS = (
    Operator(
        kinds=("TRANSPOSE_CONV",),
        layer=LayerFacts(sums=Sums(_SOURCE, _WEIGHTS, _BIAS)),
        rows=Rows(needs=_by_rows),
        numbers=PlainMeaning(form=_plain),
        integers=IntegerMeaning(
            read=_read,
            compute=_compute,
            reference=_reference,
            dynamic=OnTheFly(_read_floats, _compute_floats, dynamic.reference),
        ),
    ),
)
