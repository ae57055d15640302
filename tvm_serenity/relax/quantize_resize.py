"""Conversion of bilinear resizing between ``dequantize`` and ``quantize``."""

from typing import Any

import numpy as np

from tvm_serenity.kernels.records import Bilinear
from tvm_serenity.kernels.resize import places
from tvm_serenity.operators.scene import Shape, four
from tvm_serenity.relax.quantize_read import Leaf, RefusedError

_COORDINATES = ("half_pixel", "asymmetric", "align_corners")
_PARTS = 1024
"""Pixel weights are multiples of 1 / ``_PARTS``."""


def bilinear_of(attrs: Any, x: Leaf, made: Shape) -> Bilinear:
    """Return the resizing of ``x`` to the NHWC shape ``made``.

    Raises :class:`RefusedError` if rounded weights could put the result off by more than a step.
    """
    layout, coordinates = str(attrs.layout), str(attrs.coordinate_transformation_mode)
    axes = [layout.find(axis) for axis in "NHWC"]
    if str(attrs.method) != "linear" or -1 in axes:
        raise RefusedError(f"resizing by {attrs.method} in layout {layout} is not supported")
    shape, size = ([extents[a] for a in axes] for extents in (x.shape, made))
    if coordinates == "pytorch_half_pixel" and min(size[1:3]) > 1:
        coordinates = "half_pixel"
    if coordinates not in _COORDINATES:
        raise RefusedError(f"resizing with coordinates {coordinates} is not supported")
    for old, new in zip(shape[1:3], size[1:3], strict=True):
        at = places(old, new, coordinates) * _PARTS
        if x.params.dtype == "int16" and (at != np.rint(at)).any():
            raise RefusedError(
                "the positions of an int16 resize are not multiples of 1/1024 of a pixel"
            )
    return Bilinear(four(tuple(shape)), (size[1], size[2]), x.params.dtype, coordinates, True)
