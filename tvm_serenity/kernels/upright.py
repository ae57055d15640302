"""Kernels on tensors that stand upright: ``[1, rows, elements, channels]``, of the same bytes.

Row kernels (``kernels.rows``) read rows along the second of four axes. A kernel on tensors with
their rows elsewhere, such as ``[1, 1, time, channels]``, becomes the same kernel with other
indices: no element moves, and no loop or term changes.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import tvm
from tvm import s_tir, tirx

from tvm_serenity import compat
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.convolution import Convolution, Dense
from tvm_serenity.kernels.loops import blocks_of, has_stages
from tvm_serenity.kernels.records import AveragePool, Sum
from tvm_serenity.kernels.spec import SPEC
from tvm_serenity.kernels.spec_read import with_changed_spec

Shape = tuple[int, ...]


def stood_up(kernel: tirx.PrimFunc, shapes: Mapping[int, Shape]) -> Any:
    """Return ``kernel`` with other shapes of some parameters.

    ``shapes``: by parameter, ``[1, rows, elements, channels]`` with as many elements. The record of
    a kernel (its ``spec``) is that of the new shapes; it is left out if there is none. Raises
    :class:`UnsupportedError` if the kernel is not made of blocks, or if an index cannot be
    expressed in the new shape.
    """
    if not has_stages(kernel):
        raise UnsupportedError("its loops are not known")
    made = kernel
    for index, shape in shapes.items():
        made = _shaped(made, index, shape)
    if SPEC not in (kernel.attrs or {}):
        return made
    return with_changed_spec(made, lambda spec: _turned(spec, shapes))


def _shaped(kernel: tirx.PrimFunc, index: int, shape: Shape) -> Any:
    """Return ``kernel`` with another shape of one parameter."""
    param, schedule = kernel.params[index], s_tir.Schedule(tvm.IRModule({"main": kernel}))
    moved = _moved(compat.buffer_shape(param), shape)
    for block in blocks_of(schedule):
        known = schedule.get(block)
        for how, regions in (("read", known.reads), ("write", known.writes)):
            for number, region in enumerate(regions):
                if not region.source.same_as(param):
                    continue
                try:
                    schedule.transform_layout(block, (how, number), moved)
                except (tvm.error.TVMError, ValueError, TypeError) as reason:
                    raise UnsupportedError("its indices do not follow the rows") from reason
                return schedule.mod["main"]
    raise UnsupportedError("its loops are not known")


def _moved(before: Shape, after: Shape) -> Any:
    """Return the map of indices from one shape to ``[1, rows, elements, channels]``."""
    axis = next(a for a in range(len(before)) if prod(before[:a]) == 1 and before[a] == after[1])
    zero = tirx.IntImm("int64", 0)

    def moved(*at: Any) -> list[Any]:
        inner = zero
        for index, extent in zip(at[axis + 1 : -1], before[axis + 1 : -1], strict=True):
            inner = inner * extent + index
        return [zero, at[axis], inner, at[-1]]

    return moved


def _turned(spec: Any, shapes: Mapping[int, Shape]) -> Any:
    """Return the record of a kernel on upright tensors, None if there is none."""
    if isinstance(spec, Sum):
        first, second = (shapes.get(i, spec.pair.shapes[i]) for i in (0, 1))
        return replace(spec, pair=replace(spec.pair, shapes=(first, second)))
    if isinstance(spec, Dense):
        spec = spec.pointwise
    if isinstance(spec, Convolution) and spec.layout == "NHWC" and 1 in spec.weight_shape[:2]:
        top, left, bottom, right = spec.padding
        down, along, *rest = spec.weight_shape
        return replace(
            spec,
            pieces=tuple(_swapped(piece) for piece in spec.pieces),
            weight_shape=(along, down, *rest),
            strides=spec.strides[::-1],
            padding=(left, top, right, bottom),
            dilation=spec.dilation[::-1],
        )
    if isinstance(spec, AveragePool) and spec.layout == "NHWC":
        top, left, bottom, right = spec.padding
        return replace(
            spec,
            shape=_swapped(spec.shape),
            output_shape=_swapped(spec.output_shape),
            window=spec.window[::-1],
            strides=spec.strides[::-1],
            padding=(left, top, right, bottom),
        )
    return None


def _swapped(shape: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    n, height, width, channels = shape
    return n, width, height, channels
