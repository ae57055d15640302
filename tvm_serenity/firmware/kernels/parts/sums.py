"""Sums of two 8-bit tensors of one shape."""

import math
from collections.abc import Mapping

from tvm_serenity.firmware.integers import STATIC, integer
from tvm_serenity.firmware.kernels.parts.calls import initialiser
from tvm_serenity.firmware.kernels.parts.layer import PlainLayer
from tvm_serenity.firmware.kernels.record import KernelCall, KernelOptions
from tvm_serenity.firmware.program import Kernel, LibraryFile, Param

SUM = "Sum"
"""The value of ``computes`` of the layers."""


def refuses(layer: PlainLayer) -> str:
    """Return why ``layer`` is no sum of two 8-bit tensors of one shape, "" if it is."""
    pair = layer.spec.pair
    sources = {source.dtype for source in pair.sources}
    known = pair.rounding == "tflite" and pair.shapes[0] == pair.shapes[1] and len(sources) == 1
    if not known or not sources | {pair.result.dtype} <= {"int8", "uint8"}:
        return "supports only sums of 8-bit tensors of one shape and type"
    rows = not layer.by_rows or layer.slots == (0, 1)
    return "" if rows else "supports only sums of complete rows of two tensors"


def call(
    name: str, layer: PlainLayer, function: str, fields: Mapping[str, int], file: LibraryFile
) -> list[KernelCall]:
    """Return the call of a sum: the C ``function`` in ``file``, with ``fields`` as parameters."""
    pair = layer.spec.pair
    count = math.prod(pair.output_shape[2:] if layer.by_rows else pair.output_shape)
    params = [Param(at, pair.sources[0].dtype, True) for at in ("a", "b")]
    params.append(Param("out", pair.result.dtype, False))
    body = (
        f"    {STATIC} {function} s = {initialiser(dict(fields))};\n"
        f"    add_{function}(&s, a, b, (uint8_t *)out, {integer(count)});\n"
    )
    return [KernelCall(Kernel(name, tuple(params), body, (file,)), ())]


def counts(layer: PlainLayer, _options: KernelOptions) -> list[float]:
    """Return the counts of calls and elements."""
    shape = layer.spec.pair.output_shape
    return [1, math.prod(shape[2:] if layer.by_rows else shape)]


def case(layer: PlainLayer, _options: KernelOptions) -> str:
    """Return the case of the kernel's price table that prices ``layer``."""
    return str(layer.spec.pair.sources[0].dtype)
