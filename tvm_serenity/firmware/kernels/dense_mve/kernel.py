"""Layers of one window, such as dense layers, with vectors: four outputs of 32 inputs at a time."""

from tvm_serenity.firmware.integers import STATIC
from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts.calls import Shape, initialiser, written
from tvm_serenity.firmware.kernels.parts.counts import TYPES, RegisterTile, case_of_type, of_windows
from tvm_serenity.firmware.kernels.parts.layer import CONVOLUTION, RoundedConvolution
from tvm_serenity.firmware.kernels.parts.overlap import no_overlap
from tvm_serenity.firmware.kernels.parts.packing import signed_groups
from tvm_serenity.firmware.kernels.record import KernelCall, LibraryKernel
from tvm_serenity.firmware.program import Kernel

INPUTS = 32
"""Inputs that are summed in one iteration."""
OUTPUTS = 4
"""Outputs that are computed together."""
TILE = RegisterTile(windows=1, lines=1, outputs=OUTPUTS)


def refuses(layer: RoundedConvolution) -> str:
    """Return why the kernel does not compute ``layer``, "" if it does."""
    spec = layer.spec
    follows = layer.sources == 1 and not any(spec.padding) and spec.dilation[1] == 1
    if not layer.alone or not layer.grouped or not follows:
        return "supports only one window, with contiguous inputs"
    if layer.rounding.step or not layer.full:
        return "supports only one multiplier, and results of all values of their type"
    if layer.inputs % INPUTS or spec.channels % OUTPUTS:
        return f"supports only multiples of {INPUTS} inputs and {OUTPUTS} outputs"
    return ""


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return the call for ``layer``."""
    return [KernelCall(dense(name, layer), signed_groups(layer))]


def dense(name: str, layer: RoundedConvolution) -> Kernel:
    """Return the C function of a layer."""
    spec = layer.spec
    fields = {
        "rounds": layer.inputs // INPUTS,
        "groups": spec.channels // OUTPUTS,
        "multiplier": int(layer.rounding.multipliers[0]),
        "shift": int(layer.rounding.shifts[0]),
        "zero_point": spec.requantise.zero_point,
    }
    suffix = "_positive" if layer.clamps_at_zero else ""
    if layer.rounding.once_small:
        suffix = "_once"
    lines = [
        f"{STATIC} dense_{layer.name} d = {initialiser(fields)};",
        f"make_dense{suffix}_{layer.name}(&d, x0, w, b, (uint8_t *)out);",
    ]
    shape = Shape(["x0"], [("w", "int8"), ("b", "int32")])
    return written(name, layer, "dense_mve/kernel.h", shape, lines)


KERNEL = LibraryKernel(
    name="dense_mve",
    computes=CONVOLUTION,
    isa=frozenset({Isa.MVE}),
    refuses=refuses,
    calls=calls_of,
    passages=lambda layer, _options: no_overlap(layer),
    cases=TYPES,
    case=case_of_type,
    counts=lambda layer, _options: of_windows(TILE, layer),
)
