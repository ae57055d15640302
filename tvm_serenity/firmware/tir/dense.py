"""Layers of one window with vector instructions, dense ones: calls of ``library/dense.h``."""

import math

import numpy as np

from tvm_serenity.firmware.program import Array, Kernel, Param
from tvm_serenity.firmware.tir import strips
from tvm_serenity.firmware.tir.library import RoundedConvolution, initialiser

INPUTS = 32
"""Inputs that are summed up in one round."""
OUTPUTS = 4
"""Results that are made together."""


def covered(layer: RoundedConvolution) -> bool:
    """Whether the library has this layer as one of one window, of inputs that follow each other."""
    spec, r = layer.spec, layer.spec.requantise
    limits = np.iinfo(spec.dtype)
    one = math.prod(spec.output_shape[:3]) == 1 and layer.sources == 1 and not any(spec.padding)
    if not layer.grouped or layer.by_rows or not one or spec.dilation[1] != 1:
        return False
    if layer.how.step or strips.inputs_of(layer) % INPUTS or spec.channels % OUTPUTS:
        return False
    return r.dtype == spec.dtype and (r.low, r.high) == (limits.min, limits.max)


def constants(layer: RoundedConvolution, weights: Array) -> list[Array]:
    """Return weights ``[inputs, outputs]`` as they are read, and biases."""
    return strips.constants(layer, weights)[:2]


def dense(name: str, layer: RoundedConvolution) -> Kernel:
    """Return the kernel of a layer that is ``covered``."""
    spec = layer.spec
    fields = {
        "rounds": strips.inputs_of(layer) // INPUTS,
        "groups": spec.channels // OUTPUTS,
        "multiplier": int(layer.how.multipliers[0]),
        "shift": int(layer.how.shifts[0]),
        "zero_point": spec.requantise.zero_point,
    }
    how = "_positive" if layer.clamps_at_zero else ""
    if layer.how.name == "ROUND_ONCE_SMALL":
        how = "_once"
    body = (
        f"    static const dense_{layer.name} d = {initialiser(fields)};\n"
        f"    make_dense{how}_{layer.name}(&d, x0, w, b, (uint8_t *)out);\n"
    )
    params = [Param("x0", spec.dtype, True), Param("w", "int8", True), Param("b", "int32", True)]
    params.append(Param("out", spec.requantise.dtype, False))
    return Kernel(name, tuple(params), body, ("dot.h", "requantise.h", f"dense.h:{spec.dtype}"))
