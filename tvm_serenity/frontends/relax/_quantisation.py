"""Scales and zero points of a ``.tflite`` file, checked while tensors still have their names."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm_serenity.quantize.params import affine

_INTEGERS = {2: "int32", 3: "uint8", 4: "int64", 7: "int16", 9: "int8"}
"""Types of tensors whose parameters are checked, by their numbers in the file."""


def check_parameters(graph: Any, names: Sequence[str]) -> None:
    """Raise :class:`InputError` naming the first tensor whose parameters make no sense."""
    for index, name in enumerate(names):
        tensor = graph.Tensors(index)
        found, dtype = tensor.Quantization(), _INTEGERS.get(tensor.Type())
        if found is None or dtype is None or not found.ScaleLength():
            continue
        scales = np.asarray(found.ScaleAsNumpy(), np.float32)
        zeros = np.zeros(1, np.int64)
        if found.ZeroPointLength():
            zeros = np.asarray(found.ZeroPointAsNumpy(), np.int64)
        shape = tuple(int(extent) for extent in np.atleast_1d(tensor.ShapeAsNumpy()))
        axis = 0 if len(shape) == 1 else int(found.QuantizedDimension())  # vectors have one
        affine(name, scales, zeros, dtype, axis, shape)


def scale_of(tensor: Any) -> list[float]:
    """Return the scale and the zero point of an integer tensor of a file, or nothing."""
    found = tensor.Quantization()
    if found is None or tensor.Type() not in _INTEGERS or found.ScaleLength() != 1:
        return []
    zero = found.ZeroPoint(0) if found.ZeroPointLength() else 0
    return [float(found.Scale(0)), float(zero)]
