"""Dense layers and 1x1 convolutions for the DSP extension, from weights that are not 0."""

import numpy as np

from tvm_serenity.firmware.integers import STATIC, extent, integer
from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.pack import largest_sums
from tvm_serenity.firmware.kernels.parts import epilogue, sparse
from tvm_serenity.firmware.kernels.parts import layer as limits
from tvm_serenity.firmware.kernels.parts.calls import Shape, initialiser, written
from tvm_serenity.firmware.kernels.parts.counts import NARROW_TYPES, cases_of, clamped, lines_of
from tvm_serenity.firmware.kernels.parts.layer import CONVOLUTION, RoundedConvolution
from tvm_serenity.firmware.kernels.parts.overlap import in_order
from tvm_serenity.firmware.kernels.record import KernelCall, KernelOptions, LibraryKernel
from tvm_serenity.firmware.program import Array

WINDOWS = 8
"""Windows that are computed together."""
WIDE_BYTES = 16
"""The bytes of an input of all these windows."""
FEW_WINDOWS = 3
"""The most windows that are computed one by one: eight together take as long as three."""
PACKED_SUM = 1 << 22
"""The limit of a sum without its bias that shares a register pair with another."""
ONE = "one window"
"""The case of layers whose windows are computed one by one."""
NUMBERS_BYTES = 8
"""The bytes of the requantisation of an output."""
ROOM_BYTES = 1
"""Bytes after the codes: the last pair is read as a word."""


def refuses(layer: RoundedConvolution) -> str:
    """Return why the kernel does not compute ``layer``, "" if it does."""
    if reason := sparse.refusal(layer):
        return reason
    if not epilogue.is_short(layer):
        return "supports only sums below 2^30 and right shifts"
    sums = largest_sums(layer.weights, np.zeros_like(layer.bias), layer.spec.dtype)
    together = not _one_by_one(layer) and int(sums.max(initial=0)) >= PACKED_SUM
    return "supports only sums without bias below 2^22" if together else ""


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return the call for ``layer``; widened inputs that exceed the stack lie in workspace."""
    suffix, requantise = layer.name, layer.spec.requantise
    how = "positive" if layer.clamps_at_zero else "twice"
    if layer.rounding.once_small:
        how = "once"
    fields = {
        "channels": layer.inputs,
        "out_channels": layer.spec.channels,
        "step": NUMBERS_BYTES * layer.rounding.step,
        "low": requantise.low,
        "high": requantise.high,
    }
    functions = {"eight": f"eight_{how}_{suffix}", "one": "NULL"}
    wide_bytes = WIDE_BYTES * layer.inputs
    if _one_by_one(layer):
        functions, wide_bytes = {"eight": "NULL", "one": f"one_{how}_{suffix}"}, 0
    workspace = wide_bytes if wide_bytes > limits.STACK_BYTES else 0
    held = "int32_t *const wide = (int32_t *)(void *)workspace;"
    if not workspace:
        held = f"int32_t wide[{extent(wide_bytes // 4)}] __attribute__((aligned(8)));"
    pixels = integer(layer.spec.output_shape[1] * layer.spec.output_shape[2])
    if layer.by_rows:
        pixels = f"{integer(layer.spec.output_shape[2])} * (int32_t)*n"
    call = f"sparse_ones_{suffix}(&s, w, b, q, x0, out, {pixels});"
    if wide_bytes:
        call = f"sparse_eights_{suffix}(&s, w, b, q, x0, out, {pixels}, wide);"
    lines = [
        f"{STATIC} sparse_pairs_{suffix} s = {initialiser({**fields, **functions})};",
        *[held] * (wide_bytes > 0),
        call,
    ]
    shape = Shape(
        ["x0"], [("w", "uint8"), ("b", "int32"), ("q", "int32")], layer.by_rows, workspace > 0
    )
    kernel = written(name, layer, "sparse_dsp/kernel.h", shape, lines)
    options = KernelOptions(once=layer.rounding.once_small)
    return [KernelCall(kernel, pack(layer), workspace, options)]


def pack(layer: RoundedConvolution) -> tuple[Array, Array, Array]:
    """Return the codes of all outputs, twice their biases, and their requantisation."""
    codes = np.pad(sparse.pack(layer), (0, ROOM_BYTES))
    numbers = epilogue.numbers(layer)[: None if layer.rounding.step else 1]
    twice = 2 * layer.bias.astype(np.int64)
    return codes, twice.astype(np.int32), numbers.astype(np.uint32).view(np.int32)


def _one_by_one(layer: RoundedConvolution) -> bool:
    """Return whether windows are computed one by one."""
    lines, pixels = layer.spec.output_shape[1:3]
    return (pixels if layer.by_rows else lines * pixels) <= FEW_WINDOWS


def case(layer: RoundedConvolution, _options: KernelOptions) -> str:
    """Return the case of the price table that prices a layer."""
    return f"{ONE}, {layer.name}" if _one_by_one(layer) else layer.name


def counts(layer: RoundedConvolution, _options: KernelOptions) -> list[float]:
    """Return the counts of calls, of tiles of eight windows or of one with their work."""
    lines, pixels = lines_of(layer)
    windows, outputs = lines * pixels, layer.spec.channels
    tiles = windows if _one_by_one(layer) else -(-windows // WINDOWS)
    return [
        1,
        tiles,
        tiles * outputs,
        tiles * int(sparse.pairs_of(layer).sum()),
        tiles * layer.inputs,
        tiles * outputs * (not layer.clamps_at_zero),
        clamped(layer),
    ]


KERNEL = LibraryKernel(
    name="sparse_dsp",
    computes=CONVOLUTION,
    isa=frozenset({Isa.DSP}),
    refuses=refuses,
    calls=calls_of,
    passages=lambda layer, _options: in_order(layer, WINDOWS),
    cases=cases_of(("", ONE), NARROW_TYPES),
    case=case,
    counts=counts,
    driven=True,
)
