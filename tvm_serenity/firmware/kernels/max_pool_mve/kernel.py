"""Max pools with vectors, sixteen channels of a pixel at a time."""

from tvm_serenity.firmware.integers import STATIC, extent
from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts.calls import initialiser
from tvm_serenity.firmware.kernels.parts.counts import TYPES
from tvm_serenity.firmware.kernels.parts.layer import LANES, MOST_ROWS, PlainLayer
from tvm_serenity.firmware.kernels.record import KernelCall, KernelOptions, LibraryKernel, Passages
from tvm_serenity.firmware.passage import Passage
from tvm_serenity.firmware.program import Kernel, LibraryFile, Param


def refuses(layer: PlainLayer) -> str:
    """Return why the kernel does not compute ``layer``, "" if it does."""
    rows = layer.spec.window[0]
    if rows > MOST_ROWS:
        return f"supports only windows of at most {MOST_ROWS} rows"
    return (
        ""
        if not layer.by_rows or layer.slots == (0,) * rows
        else "supports only complete rows of one tensor"
    )


def calls_of(name: str, layer: PlainLayer) -> list[KernelCall]:
    """Return the call for ``layer``."""
    spec, rows = layer.spec, layer.spec.window[0]
    dtype, names = spec.dtype, [f"x{i}" for i in range(rows if layer.by_rows else 1)]
    lines = [f"{STATIC} max_pool_{dtype} p = {initialiser(_fields(layer))};"]
    if layer.by_rows:
        lines.append(f"const {dtype}_t *const rows[] = {{{', '.join(names)}}};")
        lines.append(f"max_pool_line_{dtype}(&p, rows, out);")
    else:
        lines.append(f"{STATIC} lines_{dtype} l = {initialiser(_lines(layer))};")
        lines.append(f"const {dtype}_t *rows[{extent(rows)}];")
        lines.append(f"max_pool_lines_{dtype}(&p, &l, x0, out, rows);")
    params = [*(Param(at, dtype, True) for at in names), Param("out", dtype, False)]
    body = "".join(f"    {line}\n" for line in lines)
    file = LibraryFile("max_pool_mve/kernel.h", dtype)
    return [KernelCall(Kernel(name, tuple(params), body, (file,)), ())]


def _fields(layer: PlainLayer) -> dict[str, int]:
    """Return the fields that position windows in a line: width, kernel, stride, padding."""
    spec = layer.spec
    return {
        "width": spec.shape[2],
        "out_width": spec.output_shape[2],
        "channels": spec.shape[3],
        "kernel_height": spec.window[0],
        "kernel_width": spec.window[1],
        "stride_x": spec.strides[1],
        "dilation_x": spec.dilation[1],
        "left": spec.before[1],
    }


def _lines(layer: PlainLayer) -> dict[str, int]:
    """Return the fields that position windows in the image: height, kernel, stride, padding."""
    spec = layer.spec
    return {
        "height": spec.shape[1],
        "out_height": spec.output_shape[1],
        "kernel_height": spec.window[0],
        "stride_y": spec.strides[0],
        "dilation_y": spec.dilation[0],
        "top": spec.before[0],
    }


def passages(layer: PlainLayer, _options: KernelOptions) -> Passages:
    """Return the passage: pixels are written one by one."""
    spec, rows = layer.spec, layer.by_rows
    (_, height, width, channels), (_, lines, pixels, _) = spec.shape, spec.output_shape
    return (
        Passage(
            1 if rows else height,
            width,
            channels,
            1 if rows else lines,
            pixels,
            channels,
            (1 if rows else spec.window[0], spec.window[1]),
            (1 if rows else spec.strides[0], spec.strides[1]),
            (1 if rows else spec.dilation[0], spec.dilation[1]),
            0 if rows else spec.before[0],
            spec.before[1],
        ),
    )


def counts(layer: PlainLayer, _options: KernelOptions) -> list[float]:
    """Return the counts of calls, lines, pixels, vectors, and rows and taps of vectors."""
    (_, lines, pixels, channels), (kh, kw) = layer.spec.output_shape, layer.spec.window
    lines = 1 if layer.by_rows else lines
    vectors = lines * pixels * -(-channels // LANES)
    return [1, lines, lines * pixels, vectors, vectors * kh, vectors * kh * kw]


KERNEL = LibraryKernel(
    name="max_pool_mve",
    computes="MaxPool",
    isa=frozenset({Isa.MVE}),
    refuses=refuses,
    calls=calls_of,
    passages=passages,
    cases=TYPES,
    case=lambda layer, _options: str(layer.spec.dtype),
    counts=counts,
)
