"""Operators of ``.tflite`` files that move elements, where TVM's importer has them wrong.

Rows and columns that are picked by a rule are taken by their indices, computed here as LiteRT does.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tflite
from tvm import relax

from tvm_serenity.errors import UnsupportedError

Array = npt.NDArray[Any]


def convert_split(converter: Any, op: Any) -> Any:
    """Return the equal parts of a tensor."""
    axis, source = converter.get_input_tensors(op)
    return _parts(converter, op, source, axis, op.OutputsLength())


def convert_split_v(converter: Any, op: Any) -> Any:
    """Return the parts of a tensor; one size may be -1, the rest."""
    source, sizes, axis = converter.get_input_tensors(op)
    if converter.has_expr(sizes.tensor_idx):
        raise UnsupportedError("its sizes are computed at run time")
    wanted = converter.get_tensor_value(sizes).reshape(-1).astype(np.int64)
    at = int(converter.get_tensor_value(axis).reshape(-1)[0])
    whole = int(converter.get_tensor_shape(source)[at])
    wanted[wanted == -1] = whole - wanted[wanted != -1].sum()
    return _parts(converter, op, source, axis, [int(e) for e in np.cumsum(wanted)[:-1]])


def _parts(converter: Any, op: Any, source: Any, axis: Any, where: Any) -> Any:
    expr = converter.get_tensor_expr(source)
    if op.OutputsLength() == 1:
        return expr
    at = int(converter.get_tensor_value(axis).reshape(-1)[0])
    return relax.op.split(expr, where, at)


def convert_mirror_pad(converter: Any, op: Any) -> Any:
    """Return a tensor with its elements mirrored around it, the outermost ones too or not."""
    source, table = converter.get_input_tensors(op)
    options = tflite.MirrorPadOptions()
    options.Init(op.BuiltinOptions().Bytes, op.BuiltinOptions().Pos)
    twice = int(options.Mode() == tflite.MirrorPadMode.SYMMETRIC)
    expr = converter.get_tensor_expr(source)
    shape = [int(e) for e in converter.get_tensor_shape(source)]
    amounts = converter.get_tensor_value(table)
    for axis, (extent, (before, after)) in enumerate(zip(shape, amounts, strict=True)):
        first = np.arange(int(before) - twice, -twice, -1)
        last = extent - 2 + twice - np.arange(int(after))
        order = np.concatenate([first, np.arange(extent), last])
        expr = _taken(expr, order, axis, extent)
    return expr


def convert_resize_nearest(converter: Any, op: Any) -> Any:
    """Return an image in another size by the nearest rows and columns, as LiteRT picks them."""
    source, size = converter.get_input_tensors(op)
    options = tflite.ResizeNearestNeighborOptions()
    options.Init(op.BuiltinOptions().Bytes, op.BuiltinOptions().Pos)
    wanted = [int(e) for e in converter.get_tensor_value(size)]
    shape = [int(e) for e in converter.get_tensor_shape(source)]
    corners, half = bool(options.AlignCorners()), bool(options.HalfPixelCenters())
    multiples = all(new % old == 0 for old, new in zip(shape[1:3], wanted, strict=True))
    if multiples and not corners and not half:  # one kernel, without indices
        return converter._convert_resize("nearest_neighbor", op)
    expr = converter.get_tensor_expr(source)
    for axis, new in zip((1, 2), wanted, strict=True):
        expr = _taken(expr, nearest(shape[axis], new, corners, half), axis, shape[axis])
    return expr


def nearest(old: int, new: int, corners: bool, half: bool) -> Array:
    """Return which of ``old`` positions each of ``new`` ones copies, in LiteRT's 32-bit floats."""
    scale = np.float32(old) / np.float32(new)
    if corners and new > 1:
        scale = np.float32(old - 1) / np.float32(new - 1)
    offset = np.float32(0.5 if half else 0)
    at = (np.arange(new).astype(np.float32) + offset) * scale
    whole = np.trunc(at + np.float32(0.5)) if corners else np.floor(at)
    return np.asarray(np.clip(whole, 0, old - 1), np.int64)


def _taken(expr: Any, order: Sequence[int] | Array, axis: int, extent: int) -> Any:
    """``expr`` with the positions ``order`` of one axis, itself where they are all in order."""
    indices = np.asarray(order, np.int64)
    if np.array_equal(indices, np.arange(extent)):
        return expr
    return relax.op.take(expr, relax.const(indices, "int64"), axis, mode="clip")


def convert_gather(converter: Any, op: Any) -> Any:
    """Return slices of a tensor along an axis, by indices."""
    source, indices = converter.get_input_tensors(op)
    options = tflite.GatherOptions()
    options.Init(op.BuiltinOptions().Bytes, op.BuiltinOptions().Pos)
    shape = [int(e) for e in converter.get_tensor_shape(source)]
    picked = [int(e) for e in converter.get_tensor_shape(indices)]
    axis, batch = options.Axis() % len(shape), options.BatchDims()
    batch = batch + len(picked) if batch < 0 else batch
    where = _checked(converter, indices, [shape[axis]])
    expr = converter.get_tensor_expr(source)
    if not batch:
        return relax.op.take(expr, where, axis, mode="clip")
    lead, outer, inner = (
        int(np.prod(p)) for p in (shape[:batch], shape[batch:axis], shape[axis + 1 :])
    )
    extent, count = shape[axis], int(np.prod(picked[batch:]))
    expr = relax.op.permute_dims(relax.op.reshape(expr, (lead, outer, extent, inner)), [0, 2, 1, 3])
    first = relax.const(np.arange(lead).reshape(-1, 1) * extent, "int64")
    rows = relax.op.add(relax.op.reshape(relax.op.astype(where, "int64"), (lead, count)), first)
    flat = relax.op.reshape(expr, (lead * extent, outer, inner))
    taken = relax.op.permute_dims(relax.op.take(flat, rows, 0, mode="clip"), [0, 2, 1, 3])
    return relax.op.reshape(taken, [*shape[:axis], *picked[batch:], *shape[axis + 1 :]])


def convert_gather_nd(converter: Any, op: Any) -> Any:
    """Return slices of a tensor, each by an index of several axes."""
    source, indices = converter.get_input_tensors(op)
    shape = [int(e) for e in converter.get_tensor_shape(source)]
    picked = [int(e) for e in converter.get_tensor_shape(indices)]
    depth = picked[-1]
    where = _checked(converter, indices, shape[:depth])
    steps = np.cumprod([1, *shape[1:depth][::-1]])[::-1].astype(np.int64)
    offsets = relax.op.multiply(relax.op.astype(where, "int64"), relax.const(steps, "int64"))
    rows = relax.op.sum(offsets, axis=[-1])
    flat = relax.op.reshape(
        converter.get_tensor_expr(source), [int(np.prod(shape[:depth])), *shape[depth:]]
    )
    return relax.op.take(flat, rows, 0, mode="clip")


def _checked(converter: Any, indices: Any, extents: Sequence[int]) -> Any:
    """The expression of indices, refused where constant ones are out of range."""
    if not converter.has_expr(indices.tensor_idx):
        values = np.asarray(converter.get_tensor_value(indices), np.int64)
        if ((values < 0) | (values >= np.asarray(extents))).any():
            raise UnsupportedError(f"an index is outside of its axis of {extents[0]}")
        return relax.const(values, "int64")
    return converter.get_tensor_expr(indices)


def convert_squeeze(converter: Any, op: Any) -> Any:
    """Return a tensor without the named axes of one element, or without all of them."""
    (source,) = converter.get_input_tensors(op)
    options = tflite.SqueezeOptions()
    if op.BuiltinOptions() is not None:
        options.Init(op.BuiltinOptions().Bytes, op.BuiltinOptions().Pos)
    shape = [int(e) for e in converter.get_tensor_shape(source)]
    named = options.SqueezeDimsLength() if op.BuiltinOptions() is not None else 0
    gone = {int(options.SqueezeDims(i)) % len(shape) for i in range(named)}
    if not named:
        gone = {i for i, extent in enumerate(shape) if extent == 1}
    left = [extent for i, extent in enumerate(shape) if i not in gone]
    return relax.op.reshape(converter.get_tensor_expr(source), left)
