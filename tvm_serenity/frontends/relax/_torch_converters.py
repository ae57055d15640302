"""Convert the PyTorch operators that TVM's importer lacks or converts wrongly.

Each converter takes a node of the exported graph and the importer, and returns the Relax value, as
``custom_convert_map`` of TVM's importer requires.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from tvm import relax

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends.relax._parts import element
from tvm_serenity.frontends.relax._pools import AxisWindow, average_pool, max_pool

if TYPE_CHECKING:
    from torch import fx

Converter = Callable[[Any, Any], Any]


class Importer(Protocol):
    """TVM's importer.

    ``env`` has the expression of each converted node; ``block_builder`` the function so far.
    """

    env: Mapping["fx.Node", Any]
    block_builder: relax.BlockBuilder


def _argument(node: "fx.Node", index: int, name: str, default: Any) -> Any:
    if len(node.args) > index:
        return node.args[index]
    return node.kwargs.get(name, default)


def _per_axis(value: int | Sequence[int] | None, rank: int, default: Any = None) -> list[int]:
    if value is None or value == []:
        value = default
    values = [value] if isinstance(value, int) else list(value)
    return values * rank if len(values) == 1 else values


def _windows(node: "fx.Node", rank: int, dilated: bool) -> list[AxisWindow]:
    """Return the windows of a pooling node, one per axis.

    The node's arguments are kernel_size, stride, padding, (dilation), ceil_mode.
    """
    size = _per_axis(node.args[1], rank)
    stride = _per_axis(_argument(node, 2, "stride", None), rank, size)
    padding = _per_axis(_argument(node, 3, "padding", 0), rank)
    dilation = _per_axis(_argument(node, 4, "dilation", 1) if dilated else 1, rank)
    ceil = bool(_argument(node, 5 if dilated else 4, "ceil_mode", False))
    return [
        AxisWindow(*each, ceil=ceil)
        for each in zip(size, stride, padding, padding, dilation, strict=True)
    ]


def _batched(x: relax.Expr, rank: int, importer: Importer) -> tuple[Any, list[int], bool]:
    """Return ``x`` with a batch axis, its spatial extents, and whether the axis was added."""
    missing = x.ty.ndim == rank + 1
    if missing:
        x = importer.block_builder.emit(relax.op.expand_dims(x, axis=0))
    return x, [int(extent) for extent in x.ty.shape.values[2:]], missing


def _pooled(rank: int, maximum: bool, indices: bool = False) -> Converter:
    def convert(node: "fx.Node", importer: Importer) -> Any:
        if indices and any(user.args[1] == 1 and user.users for user in node.users):
            raise UnsupportedError(
                "the indices of its maxima are read, which is not supported; remove their readers"
            )
        emit = importer.block_builder.emit
        x, extents, added = _batched(importer.env[node.args[0]], rank, importer)
        windows = _windows(node, rank, dilated=maximum)
        if maximum:
            made = emit(max_pool(x, extents, windows))
        else:
            counted = bool(_argument(node, 5, "count_include_pad", True))
            divisor = _argument(node, 6, "divisor_override", None)
            made = emit(average_pool(x, extents, windows, counted, divisor))
        if added:
            made = emit(relax.op.squeeze(made, axis=[0]))
        return (made, None) if indices else made

    return convert


def _shape(x: relax.Expr) -> list[int]:
    return [int(extent) for extent in x.ty.shape.values]


def _dtype(x: relax.Expr) -> str:
    return str(x.ty.dtype.dtype)


def _extreme(reduce: Callable[..., Any]) -> Converter:
    def convert(node: "fx.Node", importer: Importer) -> Any:
        axes = _argument(node, 1, "dim", None)
        axes = [axes] if isinstance(axes, int) else axes
        keep = bool(_argument(node, 2, "keepdim", False))
        x = importer.env[node.args[0]]
        return importer.block_builder.emit(reduce(x, axes or None, keepdims=keep))

    return convert


def _extreme_with_place(largest: bool) -> Converter:
    """Return the extreme values along an axis and the indices of their first occurrence."""

    def convert(node: "fx.Node", importer: Importer) -> Any:
        emit, x = importer.block_builder.emit, importer.env[node.args[0]]
        axis, keep = int(node.args[1]), bool(_argument(node, 2, "keepdim", False))
        if not x.ty.ndim:
            raise UnsupportedError("the extreme of a scalar is not supported")
        value, place = (
            (relax.op.max, relax.op.argmax) if largest else (relax.op.min, relax.op.argmin)
        )
        return emit(relax.Tuple([emit(value(x, axis, keep)), emit(place(x, axis, keep))]))

    return convert


def _any(node: "fx.Node", importer: Importer) -> Any:
    emit, x = importer.block_builder.emit, importer.env[node.args[0]]
    axes = _argument(node, 1, "dim", None)
    keep = bool(_argument(node, 2, "keepdim", False))
    truth = x if _dtype(x) == "bool" else relax.op.not_equal(x, relax.const(0, _dtype(x)))
    found = emit(relax.op.max(emit(relax.op.astype(truth, "int8")), axes, keepdims=keep))
    return emit(relax.op.astype(found, "bool"))


def _exp2(node: "fx.Node", importer: Importer) -> Any:
    x = importer.env[node.args[0]]
    return importer.block_builder.emit(relax.op.power(relax.const(2, _dtype(x)), x))


def _erfc(node: "fx.Node", importer: Importer) -> Any:
    x = importer.env[node.args[0]]
    one = relax.const(1, _dtype(x))
    return importer.block_builder.emit(relax.op.subtract(one, relax.op.erf(x)))


def _adaptive_max(rank: int) -> Converter:
    """Return the maximum of each of ``output_size`` windows, which may differ in size."""

    def convert(node: "fx.Node", importer: Importer) -> Any:
        if any(user.args[1] == 1 and user.users for user in node.users):
            raise UnsupportedError(
                "the indices of its maxima are read, which is not supported; remove their readers"
            )
        emit, x = importer.block_builder.emit, importer.env[node.args[0]]
        for axis, size in enumerate(_per_axis(node.args[1], rank), x.ty.ndim - rank):
            extent = _shape(x)[axis]
            parts = [
                emit(
                    relax.op.max(
                        emit(
                            relax.op.strided_slice(
                                x, [axis], [i * extent // size], [-(-(i + 1) * extent // size)]
                            )
                        ),
                        axis,
                        keepdims=True,
                    )
                )
                for i in range(size)
            ]
            x = parts[0] if len(parts) == 1 else emit(relax.op.concat(parts, axis))
        return (x, None)

    return convert


def _embedding(node: "fx.Node", importer: Importer) -> Any:
    """Return rows of a table; indices out of range read its last row."""
    emit = importer.block_builder.emit
    table, index = importer.env[node.args[0]], importer.env[node.args[1]]
    flat = emit(relax.op.reshape(index, [-1]))
    rows = emit(relax.op.take(table, flat, axis=0, mode="clip"))
    return emit(relax.op.reshape(rows, [*_shape(index), _shape(table)[1]]))


def _selected(node: "fx.Node", importer: Importer) -> Any:
    """Return ``x[:, i]``, without that axis; a negative index counts from the end."""
    x, axis, index = importer.env[node.args[0]], int(node.args[1]), int(node.args[2])
    axis %= x.ty.ndim
    index %= _shape(x)[axis]
    return element(importer.block_builder.emit, x, index, axis)


def _elu(node: "fx.Node", importer: Importer) -> Any:
    """Return ``scale * x`` if positive, else ``scale * alpha * (exp(x * input_scale) - 1)``.

    It is ELU, and the decomposition of SELU and CELU.
    """
    emit, x = importer.block_builder.emit, importer.env[node.args[0]]
    names = ("alpha", "scale", "input_scale")
    numbers = [_argument(node, i, name, 1) for i, name in enumerate(names, 1)]
    alpha, scale, inner, one, zero = (relax.const(v, _dtype(x)) for v in (*numbers, 1, 0))
    power = emit(relax.op.exp(emit(relax.op.multiply(x, inner))))
    below = emit(relax.op.multiply(alpha, emit(relax.op.subtract(power, one))))
    made = emit(relax.op.where(relax.op.greater(x, zero), x, below))
    return emit(relax.op.multiply(scale, made))


def _nearest(rank: int, exact: bool) -> Converter:
    """Return the element ``floor((i + offset) * scale)`` of each axis, in float32 as in PyTorch.

    ``scale``: the ratio of extents, or the reciprocal of the stated factor. ``exact``: the offset
    is one half, otherwise 0.
    """

    def convert(node: "fx.Node", importer: Importer) -> Any:
        emit, x = importer.block_builder.emit, importer.env[node.args[0]]
        shape, made = _shape(x)[2:], list(node.meta["val"].shape)[2:]
        factors = _argument(node, 2, "scale_factors", None) or [None] * rank
        f32, offset = np.float32, np.float32(0.5 if exact else 0.0)
        for axis, (extent, wanted, factor) in enumerate(zip(shape, made, factors, strict=True), 2):
            scale = f32(extent) / f32(wanted) if factor is None else f32(1.0 / factor)
            places = np.floor((np.arange(wanted, dtype=f32) + offset) * scale).astype(np.int64)
            places = np.minimum(places, extent - 1)
            if wanted % extent == 0 and (places == np.arange(wanted) // (wanted // extent)).all():
                x = emit(relax.op.repeat(x, wanted // extent, axis))
            else:
                x = emit(relax.op.take(x, relax.const(places, "int64"), axis=axis, mode="clip"))
        return x

    return convert


def _index(node: "fx.Node", importer: Importer) -> Any:
    """Return ``x[i, :, j]``: the indexed axes are flattened and read by one index."""
    emit, x = importer.block_builder.emit, importer.env[node.args[0]]
    given = [None if i is None else importer.env[i] for i in node.args[1]]
    axes = [axis for axis, index in enumerate(given) if index is not None]
    if any(_dtype(given[axis]) in ("bool", "uint8") for axis in axes):
        raise UnsupportedError("it indexes with a mask, so the size of its result depends on data")
    shape = _shape(x)
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    common = np.broadcast_shapes(*(tuple(_shape(given[axis])) for axis in axes))
    flat = None
    for axis in axes:
        index = emit(relax.op.astype(given[axis], "int64"))
        wrapped = relax.op.add(index, relax.const(shape[axis], "int64"))
        index = emit(relax.op.where(relax.op.less(index, relax.const(0, "int64")), wrapped, index))
        if flat is not None:
            flat = emit(relax.op.multiply(flat, relax.const(shape[axis], "int64")))
        flat = index if flat is None else emit(relax.op.add(flat, index))
    flat = emit(relax.op.reshape(emit(relax.op.broadcast_to(flat, common)), [-1]))
    moved = emit(relax.op.permute_dims(x, [*axes, *rest]))
    tail = [shape[axis] for axis in rest]
    count = int(np.prod([shape[axis] for axis in axes]))
    rows = emit(relax.op.reshape(moved, [count, *tail]))
    made = emit(relax.op.take(rows, flat, axis=0, mode="clip"))
    made = emit(relax.op.reshape(made, [*common, *tail]))
    if axes != list(range(axes[0], axes[0] + len(axes))):
        return made  # separated indexed axes come first
    order = list(range(len(common), len(common) + axes[0]))
    order += range(len(common))
    order += range(len(common) + axes[0], len(common) + len(rest))
    return emit(relax.op.permute_dims(made, order))


def _scatter_add(node: "fx.Node", importer: Importer) -> Any:
    x, axis, index, source = (
        importer.env[a] if i != 1 else int(a) for i, a in enumerate(node.args[:4])
    )
    if any(a > b for a, b in zip(_shape(index), _shape(source), strict=True)):
        raise UnsupportedError("its index is larger than its source")
    emit, sizes = importer.block_builder.emit, _shape(index)
    if _shape(source) != sizes:
        every = list(range(len(sizes)))
        source = emit(relax.op.strided_slice(source, every, [0] * len(sizes), sizes))
    return emit(relax.op.scatter_elements(x, index, source, axis, reduction="add"))


def _sum(subtract: bool, swapped: bool = False) -> Converter:
    """Return a converter to ``a + alpha * b`` or ``a - alpha * b`` in PyTorch's promoted type."""

    def convert(node: "fx.Node", importer: Importer) -> Any:
        emit = importer.block_builder.emit
        dtype = str(node.meta["val"].dtype).removeprefix("torch.")
        first, second = (_as_type(argument, dtype, importer) for argument in node.args[:2])
        if swapped:
            first, second = second, first
        alpha = _argument(node, 2, "alpha", 1)
        if alpha != 1:
            second = emit(relax.op.multiply(second, relax.const(alpha, dtype)))
        if dtype == "bool":
            return emit(relax.op.logical_or(first, second))
        return emit((relax.op.subtract if subtract else relax.op.add)(first, second))

    return convert


def _clamp(low: int | None, high: int | None) -> Converter:
    """Return a converter of clamps; ``low`` and ``high`` are the positions of the bounds.

    TVM uses an infinite bound for integers without one.
    """

    def convert(node: "fx.Node", importer: Importer) -> Any:
        emit = importer.block_builder.emit
        dtype = str(node.meta["val"].dtype).removeprefix("torch.")
        made = _as_type(node.args[0], dtype, importer)
        for index, bound in ((low, relax.op.maximum), (high, relax.op.minimum)):
            name = "min" if index == low else "max"
            value = None if index is None else _argument(node, index, name, None)
            if value is not None:
                made = emit(bound(made, _as_type(value, dtype, importer)))
        return made

    return convert


def _as_type(value: "fx.Node | bool | int | float", dtype: str, importer: Importer) -> Any:
    if isinstance(value, bool | int | float):
        return relax.const(value, dtype)
    x = importer.env[value]
    if _dtype(x) == dtype:
        return x
    return importer.block_builder.emit(relax.op.astype(x, dtype))


def _prelu(node: "fx.Node", importer: Importer) -> Any:
    """Return PRELU with one slope, or one per channel: the axis after the first."""
    x, slopes = importer.env[node.args[0]], importer.env[node.args[1]]
    axis = min(1, x.ty.ndim - 1)
    if int(slopes.ty.shape[0]) == 1:
        slopes = importer.block_builder.emit(relax.op.broadcast_to(slopes, [x.ty.shape[axis]]))
    return importer.block_builder.emit(relax.op.nn.prelu(x, slopes, axis))


def _adaptive_average(node: "fx.Node", importer: Importer) -> Any:
    """Return an adaptive average pool of sequences; to one element it is a mean."""
    x, size = importer.env[node.args[0]], _per_axis(node.args[1], 1)
    if size == [1]:
        return importer.block_builder.emit(relax.op.mean(x, [-1], keepdims=True))
    return importer.block_builder.emit(relax.op.nn.adaptive_avg_pool1d(x, size))


CONVERTERS: dict[str, Converter] = {
    **{f"avg_pool{rank}d.default": _pooled(rank, False) for rank in (1, 2, 3)},
    **{f"max_pool{rank}d.default": _pooled(rank, True) for rank in (1, 2, 3)},
    **{f"max_pool{rank}d_with_indices.default": _pooled(rank, True, True) for rank in (2, 3)},
    **{f"adaptive_max_pool{rank}d.default": _adaptive_max(rank) for rank in (2, 3)},
    "add.Tensor": _sum(subtract=False),
    "add.Scalar": _sum(subtract=False),
    "sub.Tensor": _sum(subtract=True),
    "sub.Scalar": _sum(subtract=True),
    "rsub.Tensor": _sum(subtract=True, swapped=True),
    "rsub.Scalar": _sum(subtract=True, swapped=True),
    "clamp.default": _clamp(1, 2),
    "clamp.Tensor": _clamp(1, 2),
    "clamp_min.default": _clamp(1, None),
    "clamp_max.default": _clamp(None, 1),
    "amax.default": _extreme(relax.op.max),
    "amin.default": _extreme(relax.op.min),
    "max.dim": _extreme_with_place(True),
    "min.dim": _extreme_with_place(False),
    "any.default": _any,
    "any.dim": _any,
    "any.dims": _any,
    "exp2.default": _exp2,
    "erfc.default": _erfc,
    "elu.default": _elu,
    "prelu.default": _prelu,
    "adaptive_avg_pool1d.default": _adaptive_average,
    "embedding.default": _embedding,
    **{f"upsample_nearest{rank}d.vec": _nearest(rank, False) for rank in (1, 2, 3)},
    **{f"_upsample_nearest_exact{rank}d.vec": _nearest(rank, True) for rank in (1, 2, 3)},
    "index.Tensor": _index,
    "select.int": _selected,
    "scatter_add.default": _scatter_add,
}
"""Converters by operator name and overload."""
