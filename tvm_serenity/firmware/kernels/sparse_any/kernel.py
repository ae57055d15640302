"""Dense layers and 1x1 convolutions on every core, from weights of 4 or 8 bits that are not 0."""

from tvm_serenity.firmware.integers import STATIC, integer
from tvm_serenity.firmware.isa import ANY
from tvm_serenity.firmware.kernels.parts.calls import Shape, initialiser, target, written
from tvm_serenity.firmware.kernels.parts.counts import NARROW_TYPES, case_of_type, clamped, lines_of
from tvm_serenity.firmware.kernels.parts.layer import CONVOLUTION, RoundedConvolution
from tvm_serenity.firmware.kernels.parts.overlap import in_order
from tvm_serenity.firmware.kernels.parts.packing import numbers
from tvm_serenity.firmware.kernels.parts.sparse import pack, pairs_of, refusal
from tvm_serenity.firmware.kernels.record import KernelCall, KernelOptions, LibraryKernel

WINDOWS = 4
"""Windows that are computed together."""


def calls_of(name: str, layer: RoundedConvolution) -> list[KernelCall]:
    """Return the call for ``layer``."""
    suffix = layer.name
    fields = {"channels": layer.inputs, "out_channels": layer.spec.channels, "to": target(layer)}
    pixels = integer(layer.spec.output_shape[1] * layer.spec.output_shape[2])
    if layer.by_rows:
        pixels = f"{integer(layer.spec.output_shape[2])} * (int32_t)*n"
    lines = [
        f"{STATIC} sparse_{suffix} c = {initialiser(fields)};",
        f"const sparse_with_{suffix} with = {{w, b, m, r}};",
        f"sparse_windows_{suffix}(&c, &with, x0, (uint8_t *)out, {pixels});",
    ]
    takes = [("w", "uint8"), ("b", "int32"), ("m", "int32"), ("r", "int8")]
    shape = Shape(["x0"], takes, layer.by_rows)
    kernel = written(name, layer, "sparse_any/kernel.h", shape, lines)
    return [KernelCall(kernel, (pack(layer), *numbers(layer)))]


def counts(layer: RoundedConvolution, _options: KernelOptions) -> list[float]:
    """Return the counts of calls, and of tiles of four windows and of one with their work."""
    lines, pixels = lines_of(layer)
    tiles = divmod(lines * pixels, WINDOWS)
    outputs, pairs = layer.spec.channels, int(pairs_of(layer).sum())
    return [
        1,
        *tiles,
        *(n * outputs for n in tiles),
        *(n * pairs for n in tiles),
        clamped(layer),
    ]


KERNEL = LibraryKernel(
    name="sparse_any",
    computes=CONVOLUTION,
    isa=ANY,
    refuses=refusal,
    calls=calls_of,
    passages=lambda layer, _options: in_order(layer, WINDOWS),
    cases=NARROW_TYPES,
    case=case_of_type,
    counts=counts,
    driven=True,
)
