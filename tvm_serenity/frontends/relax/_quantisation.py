"""The check of scales and zero points in a ``.tflite`` file, by tensor name."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.quantize.params import affine

if TYPE_CHECKING:
    import tflite

INT4 = 17
"""The number of the 4-bit integer type in the file; two integers in a byte."""
_INTEGERS = {2: "int32", 3: "uint8", 4: "int64", 7: "int16", 9: "int8", INT4: "int8"}
"""Tensor types whose parameters are checked, by number."""


def check_parameters(graph: "tflite.SubGraph", names: Sequence[str]) -> None:
    """Raise :class:`InputError` for the first tensor whose scales or zero points are invalid."""
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
        axis = 0 if len(shape) == 1 else int(found.QuantizedDimension())  # vectors have one axis
        affine(name, scales, zeros, dtype, axis, shape)


def unpacked(data: npt.NDArray[np.uint8], tensor: "tflite.Tensor") -> npt.NDArray[np.int8]:
    """Return 4-bit integers, lower half of a byte first, as int8 in the tensor's shape."""
    shape = tuple(int(extent) for extent in np.atleast_1d(tensor.ShapeAsNumpy()))
    count = int(np.prod(shape, dtype=np.int64))
    if 2 * data.size < count:
        raise UnsupportedError(f"{data.size} bytes are too few for {count} integers of 4 bits")
    both = np.stack([data << 4, data & 0xF0], axis=1).reshape(-1)[:count]
    return np.asarray(both.view(np.int8) >> 4).reshape(shape)


def scale_of(tensor: "tflite.Tensor") -> list[float]:
    """Return the scale and zero point of an integer tensor; empty unless it has one scale."""
    found = tensor.Quantization()
    if found is None or tensor.Type() not in _INTEGERS or found.ScaleLength() != 1:
        return []
    zero = found.ZeroPoint(0) if found.ZeroPointLength() else 0
    return [float(found.Scale(0)), float(zero)]
