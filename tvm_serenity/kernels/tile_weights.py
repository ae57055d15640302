"""Weights reordered to the order in which register tiles read them.

A tile reads a few neighbouring channels of its weights, then as many of the next step: in weights
``[steps..., channels]`` these are a cache line or two in many pages. Stored as ``[tiles, steps...,
channels of a tile]`` they are read sequentially. Sums, and the order of their terms, stay the same.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import s_tir, tirx

from tvm_serenity import compat
from tvm_serenity.kernels.lean import inline_stages, may_change
from tvm_serenity.kernels.loops import blocks_of
from tvm_serenity.kernels.records import Array
from tvm_serenity.kernels.tile import Tiling, weights_of

NEAR_BYTES = 1 << 15
"""Weights of at most this size (L1) are not reordered."""


@dataclass(frozen=True)
class InTiles:
    """A kernel that reads its parameter number ``index`` in tiles of ``width`` channels."""

    kernel: tirx.PrimFunc
    index: int
    width: int

    def stored(self, weight: Array) -> Array:
        """Return weights ``[steps..., channels]`` in the kernel's order."""
        tiles = weight.reshape(*weight.shape[:-1], -1, self.width)
        return np.ascontiguousarray(np.moveaxis(tiles, -2, 0))


def in_tiles(kernel: tirx.PrimFunc, tiling: Tiling) -> InTiles | None:
    """Return ``kernel`` (a PrimFunc of blocks) with weights in the order of its tiles.

    Return None for a kernel without tiles, with few weights, or with channels that tiles do not
    divide.
    """
    if not may_change(kernel):
        return None
    schedule = s_tir.Schedule(tvm.IRModule({"main": kernel}))
    inline_stages(schedule)
    found = weights_of(schedule, tiling)
    params = [i for i, p in enumerate(kernel.params) if found and p.name == found.buffer.name]
    if found is None or len(params) != 1:
        return None
    shape = compat.buffer_shape(kernel.params[params[0]])
    size = compat.size_bytes(shape, compat.buffer_dtype(kernel.params[params[0]]))
    if size <= NEAR_BYTES or shape[-1] <= found.width or shape[-1] % found.width:
        return None
    return InTiles(_read_in_tiles(kernel, params[0], found.width), params[0], found.width)


def _read_in_tiles(kernel: tirx.PrimFunc, index: int, width: int) -> Any:
    """Return the kernel with a parameter of shape ``[tiles, steps..., width]``."""
    schedule = s_tir.Schedule(tvm.IRModule({"main": kernel}))
    param = kernel.params[index]

    def moved(*at: Any) -> list[Any]:
        return [at[-1] // width, *at[:-1], at[-1] % width]

    for block in blocks_of(schedule):
        sources = [region.source for region in schedule.get(block).reads]
        for number, source in enumerate(sources):
            if source.same_as(param):
                schedule.transform_layout(block, ("read", number), moved)
                return schedule.mod["main"]
    raise AssertionError(f"no block reads {param.name}")
