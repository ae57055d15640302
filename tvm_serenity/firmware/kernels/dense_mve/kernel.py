"""Layers of one window with vectors, dense ones: four outputs, 32 inputs at a time."""

from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts.calls import Shape, initialiser, written
from tvm_serenity.firmware.kernels.parts.counts import TYPES, RegisterTile, case_of_type, of_windows
from tvm_serenity.firmware.kernels.parts.layer import CONVOLUTION, RoundedConvolution
from tvm_serenity.firmware.kernels.parts.overlap import apart
from tvm_serenity.firmware.kernels.parts.packing import signed_groups
from tvm_serenity.firmware.kernels.record import KernelCall, LibraryKernel
from tvm_serenity.firmware.program import Kernel

INPUTS = 32
"""Inputs that are summed up in one round."""
OUTPUTS = 4
"""Results that are made together."""
TILE = RegisterTile(windows=1, lines=1, outputs=OUTPUTS)


def refuses(layer: RoundedConvolution) -> str:
    """Return why it does not make a layer."""
    spec = layer.spec
    follows = layer.sources == 1 and not any(spec.padding) and spec.dilation[1] == 1
    if not layer.alone or not layer.grouped or not follows:
        return "has one window, of inputs that follow each other"
    if layer.rounding.step or not layer.full:
        return "has one multiplier, and results of all values of their type"
    if layer.inputs % INPUTS or spec.channels % OUTPUTS:
        return f"has inputs by {INPUTS} and outputs by {OUTPUTS}"
    return ""


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return its call."""
    return [KernelCall(dense(name, layer), signed_groups(layer))]


def dense(name: str, layer: RoundedConvolution) -> Kernel:
    """Return the kernel of a layer."""
    spec = layer.spec
    fields = {
        "rounds": layer.inputs // INPUTS,
        "groups": spec.channels // OUTPUTS,
        "multiplier": int(layer.rounding.multipliers[0]),
        "shift": int(layer.rounding.shifts[0]),
        "zero_point": spec.requantise.zero_point,
    }
    how = "_positive" if layer.clamps_at_zero else ""
    if layer.rounding.once_small:
        how = "_once"
    lines = [
        f"static const dense_{layer.name} d = {initialiser(fields)};",
        f"make_dense{how}_{layer.name}(&d, x0, w, b, (uint8_t *)out);",
    ]
    shape = Shape(["x0"], [("w", "int8"), ("b", "int32")])
    return written(name, layer, "dense_mve/kernel.h", shape, lines)


KERNEL = LibraryKernel(
    name="dense_mve",
    computes=CONVOLUTION,
    isa=frozenset({Isa.MVE}),
    refuses=refuses,
    calls=calls_of,
    passages=lambda layer, _options: apart(layer),
    cases=TYPES,
    case=case_of_type,
    counts=lambda layer, _options: of_windows(TILE, layer),
)
