"""Kernels that read and write tensors with permuted axes: a transpose as an index map."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import tvm
from tvm import s_tir, tirx

from tvm_serenity import compat
from tvm_serenity.kernels.loops import blocks_of
from tvm_serenity.kernels.spec import SPEC

SWAPPED = (0, 2, 1, 3)
"""The axes of a tensor [batch, heads, tokens, channels] that is stored token by token."""


def permuted(kernel: tirx.PrimFunc, axes: Mapping[int, Sequence[int]]) -> Any:
    """Return ``kernel`` (blocks, one per stage) on stored tensors with permuted axes.

    ``axes``: by parameter, the axes of the stored tensor, as the argument of a transpose. A result
    with the axes ``SWAPPED`` is computed in the order in which it is stored, and so are the stages
    before it. The kernel has no record, which would describe other shapes.
    """
    schedule = s_tir.Schedule(tvm.IRModule({"main": kernel}))
    shape = list(compat.buffer_shape(kernel.params[-1]))
    swaps = tuple(axes.get(len(kernel.params) - 1, ())) == SWAPPED
    for block, kind, number, buffer in list(_buffers(schedule)):
        index = next((i for i, p in enumerate(kernel.params) if p.same_as(buffer)), None)
        order: Sequence[int] | None = None
        if index is not None:
            order = axes.get(index)
        elif swaps and list(compat.buffer_shape(buffer))[:3] == shape[:3]:
            order = SWAPPED[: len(compat.buffer_shape(buffer))]
        if order is not None:
            schedule.transform_layout(block, (kind, number), _index_map(order))
    for block in blocks_of(schedule) if swaps else ():
        extents = [int(schedule.get(loop).extent) for loop in schedule.get_loops(block)]
        if extents[:3] == shape[:3]:
            axes_of_block = (*SWAPPED[:3], *range(3, len(extents)))
            schedule.transform_block_layout(block, _index_map(axes_of_block))
    return schedule.mod["main"].without_attr(SPEC).without_attr("global_symbol")


def _buffers(schedule: s_tir.Schedule) -> Iterator[tuple[Any, str, int, Any]]:
    """Yield each buffer where it is first used: the block, "read" or "write", the region."""
    seen: list[Any] = []
    for block in blocks_of(schedule):
        realised = schedule.get(block)
        for kind, regions in (("read", realised.reads), ("write", realised.writes)):
            for number, region in enumerate(regions):
                if not any(region.source.same_as(other) for other in seen):
                    seen.append(region.source)
                    yield block, kind, number, region.source


def _index_map(order: Sequence[int]) -> tirx.IndexMap:
    return tirx.IndexMap.from_func(lambda *at: [at[axis] for axis in order], ndim=len(order))


def with_images(kernel: tirx.PrimFunc, parameters: Collection[int]) -> Any:
    """Return ``kernel`` (blocks) with sequences as images ``[1, tokens, 1, channels]``.

    ``parameters``: the sequences, ``[tokens, channels]`` or ``[1, tokens, channels]``. The elements
    keep their order in memory; the kernel has no record, which would describe other shapes.
    """
    schedule = s_tir.Schedule(tvm.IRModule({"main": kernel}))
    for block, kind, number, buffer in list(_buffers(schedule)):
        if any(kernel.params[i].same_as(buffer) for i in parameters):
            shape = compat.buffer_shape(buffer)
            schedule.transform_layout(block, (kind, number), _image_map(shape))
    return schedule.mod["main"].without_attr(SPEC).without_attr("global_symbol")


def _image_map(shape: Sequence[int]) -> tirx.IndexMap:
    *_, tokens, channels = shape

    def image(*at: tirx.Var) -> list[Any]:
        *first, token, channel = at
        batch = first or [tirx.floordiv(token, tokens)]
        inner = [tirx.floordiv(channel, channels), tirx.floormod(channel, channels)]
        return [*batch, tirx.floormod(token, tokens), *inner]

    return tirx.IndexMap.from_func(image, ndim=len(shape))
