"""Convolutions of few inputs with vectors: weights stay in registers for many windows.

Windows of one pixel are read in place. Others are copied (im2col), as many at a time as the columns
hold.
"""

from tvm_serenity.firmware.integers import STATIC, integer
from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts.calls import (
    Called,
    Shape,
    calls,
    columns,
    convolution_fields,
    written,
)
from tvm_serenity.firmware.kernels.parts.counts import TYPES, cases_of, leaving, lines_of
from tvm_serenity.firmware.kernels.parts.layer import (
    CONVOLUTION,
    LANES,
    MOST_COLUMN_BYTES,
    RoundedConvolution,
)
from tvm_serenity.firmware.kernels.parts.overlap import in_order
from tvm_serenity.firmware.kernels.parts.packing import signed_groups
from tvm_serenity.firmware.kernels.record import KernelCall, KernelOptions, LibraryKernel, Passages
from tvm_serenity.firmware.program import Kernel

MOST_WINDOWS = 64
"""Windows that are copied at a time; more windows would hardly be faster."""
OUTPUTS = 4
"""Output channels are computed in groups of this size."""


def refuses(layer: RoundedConvolution) -> str:
    """Return why the kernel does not compute ``layer``, "" if it does."""
    spec = layer.spec
    if not layer.grouped or not layer.rounding.twice_small or not layer.full:
        return "supports only sums below 2^30 that are rounded twice, to all values of their type"
    if len(spec.pieces) > 1 or spec.dilation[1] != 1 or layer.inputs > 2 * LANES:
        return f"supports only windows of one tensor with at most {2 * LANES} inputs"
    return f"supports only multiples of {OUTPUTS} outputs" if spec.channels % OUTPUTS else ""


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return the call for ``layer``."""
    constants = (*signed_groups(layer), layer.rounding.multipliers, layer.rounding.shifts)
    return [KernelCall(convolution(name, layer), constants, workspace_bytes(layer))]


def direct(layer: RoundedConvolution) -> bool:
    """Return whether windows are single pixels, which are read in place."""
    return layer.spec.weight_shape[:2] == (1, 1) and not any(layer.spec.padding)


def windows(layer: RoundedConvolution) -> int:
    """Return the number of windows that are copied at a time, 0 if they are read in place."""
    if direct(layer):
        return 0
    room = MOST_COLUMN_BYTES // layer.depth if layer.by_rows else MOST_WINDOWS
    return min(room, MOST_WINDOWS, layer.spec.output_shape[2])


def workspace_bytes(layer: RoundedConvolution) -> int:
    """Return the bytes of the columns in workspace, 0 for a row kernel: they lie on its stack."""
    more = _lanes(layer) - layer.depth if _reads_on(layer) else 0
    return 0 if layer.by_rows else windows(layer) * layer.depth + more


def convolution(name: str, layer: RoundedConvolution) -> Kernel:
    """Return the C function of a convolution."""
    dtype, most = layer.spec.dtype, windows(layer)
    gathered, declared = columns(layer, most * layer.depth)
    lines = [
        f"{STATIC} convolution_{dtype} c = {convolution_fields(layer)};",
        *declared,
        f"const with_{dtype} with = {{w, b, m, r, NULL, {gathered}, NULL}};",
    ]
    called = Called(
        f"convolve_strips_{layer.name}",
        f"convolve_lines_strips_{layer.name}",
        f"&c, &with, {_sum(layer)}, {integer(most)}",
        1,
        "(uint8_t *)out",
    )
    names, made = calls(layer, called)
    takes = [("w", "int8"), ("b", "int32"), ("m", "int32"), ("r", "int8")]
    counts, workspace = layer.by_rows and layer.plain, most > 0 and not layer.by_rows
    shape = Shape(names, takes, counts, workspace)
    return written(name, layer, "conv_few_inputs_mve/kernel.h", shape, [*lines, *made])


def _sum(layer: RoundedConvolution) -> str:
    """Return the name of the C function that sums a strip of windows."""
    whole = "_whole" if _reads_on(layer) else ""
    positive = "_positive" if layer.clamps_at_zero else ""
    return f"strip_{_lanes(layer)}{whole}{positive}_{layer.name}"


def _lanes(layer: RoundedConvolution) -> int:
    """Return the number of vector lanes for a window: 16 or 32."""
    return LANES if layer.inputs <= LANES else 2 * LANES


def _reads_on(layer: RoundedConvolution) -> bool:
    """Return whether vectors are read completely: windows fill them, or columns are padded."""
    return layer.inputs == _lanes(layer) or (windows(layer) > 0 and not layer.by_rows)


def passages(layer: RoundedConvolution, _options: KernelOptions) -> Passages:
    """Return the passages: pixels are written in groups of the windows that are read together."""
    lines, pixels = lines_of(layer)
    return in_order(layer, windows(layer) or (lines * pixels if layer.plain else pixels))


def counts(layer: RoundedConvolution, _options: KernelOptions) -> list[float]:
    """Return the counts of the kernel's work for ``layer``, in the order of its prices."""
    lines, pixels = lines_of(layer)
    few = layer.inputs <= LANES
    outputs = layer.spec.channels // (4 if few else 2)
    count = lines * pixels
    most = windows(layer)
    times = -(-pixels // most) if most else 1
    copied = count if most else 0
    odd = lines * (times * (most % 2) if most and most % 2 else pixels % 2)
    top, bottom = layer.spec.padding[::2]
    above = 0 if layer.by_rows else min(lines, top + bottom) * pixels
    over = max(leaving(layer), above if most else 0)
    sources = layer.sources
    return [
        1,
        lines,
        lines * times,
        lines * times * outputs,
        outputs * odd,
        count,
        count * outputs,
        count * outputs * (not layer.clamps_at_zero),
        copied * sources,
        copied * layer.depth,
        lines * sources * times if most else 0,
        over,
        over * sources,
        over * layer.depth,
    ]


def case(layer: RoundedConvolution, _options: KernelOptions) -> str:
    """Return the case of the kernel's price table that prices ``layer``."""
    return f"of {_lanes(layer)}, {'plain, ' * layer.plain}{layer.name}"


KERNEL = LibraryKernel(
    name="conv_few_inputs_mve",
    computes=CONVOLUTION,
    isa=frozenset({Isa.MVE}),
    refuses=refuses,
    calls=calls_of,
    passages=passages,
    cases=cases_of(("of 16", "of 32"), ("", "plain"), TYPES),
    case=case,
    counts=counts,
)
