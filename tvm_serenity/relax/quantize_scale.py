"""Stored tensors in other scales: by a table, or by a multiplier where a table would be large."""

from typing import Any

import numpy as np
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.kernels import pointwise
from tvm_serenity.kernels.records import Requantise
from tvm_serenity.quantize import tables
from tvm_serenity.quantize.fixed import multiplier
from tvm_serenity.quantize.params import Affine
from tvm_serenity.relax.quantize_read import Leaf
from tvm_serenity.relax.quantize_region import Region, Rewriter


def rescaled(rewriter: Rewriter, region: Region, leaf: Leaf, source: relax.Var) -> Any:
    """Return ``source``, stored as ``leaf`` says, in the scale and limits of ``region``."""
    same = (leaf.params.scale, leaf.params.zero_point, leaf.params.dtype) == (
        region.result.scale,
        region.result.zero_point,
        region.result.dtype,
    )
    if same and region.is_unclamped:
        return source
    if {"int16", "int32"} & {leaf.params.dtype, region.result.dtype}:
        finish = Requantise(
            multiplier(leaf.params.scale / region.result.scale),
            region.result.zero_point,
            region.low,
            region.high,
            region.result.dtype,
            rewriter.rounding,
        )
        kernel = pointwise.rescale(leaf.shape, leaf.params, finish)
        return rewriter.kernel("q_rescale", kernel, [source])
    table = tables.rescaled(leaf.params, region.result, region.low, region.high, rewriter.rounding)
    return look_up(rewriter, leaf, source, table, region.result)


def look_up(rewriter: Rewriter, leaf: Leaf, source: relax.Var, table: Any, result: Affine) -> Any:
    """Return ``source`` with each stored value replaced by what ``table`` has for it."""
    kernel = pointwise.lookup(leaf.shape, leaf.params.dtype, result.dtype)
    return rewriter.kernel("q_table", kernel, [source, compat.constant(np.asarray(table))])
