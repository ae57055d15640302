"""C functions that call the library: its structures, functions for tensors and for rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from tvm_serenity.firmware.integers import STATIC, extent, integer
from tvm_serenity.firmware.kernels.parts.layer import RoundedConvolution
from tvm_serenity.firmware.program import Kernel, LibraryFile, Param
from tvm_serenity.kernels.records import Convolution

CHANNELS = "uint16"
"""The type of the channels of a piece in a ``convolution``."""
COUNT = "n"
"""The last parameter of row kernels that compute several consecutive rows: their number."""
WORDS = "__attribute__((aligned(4)))"
"""The attribute of columns on the stack: they are filled word by word."""
NO_BORDER = 1 << 30
"""A sentinel for the width that disables padding: no window exceeds it."""
MOST_STRETCHES = 5
"""The stretches of a row under two windows: each window is outside, inside and outside."""


def convolution_fields(layer: RoundedConvolution, read: str = "") -> str:
    """Return the C initialiser of a ``convolution``; ``read``: the function that reads windows."""
    spec = layer.spec
    fields = {
        "pieces": str(len(spec.pieces)),
        **geometry(spec),
        **({"width": NO_BORDER, "out_width": NO_BORDER} if layer.plain else {}),
        "out_channels": spec.channels,
        "depth": layer.depth,
        "input_zero": spec.input_zero,
        "to": target(layer),
        **({"read": read} if read else {}),
        "channels": f"{{{', '.join(integer(shape[3], CHANNELS) for shape in spec.pieces)}}}",
    }
    return initialiser(fields)


@dataclass(frozen=True)
class Called:
    """The library's ``function`` for pixels of a row, and ``lines`` for complete tensors.

    ``given``: their first arguments in C. ``lines`` computes ``together`` lines at a time, and has
    pointers to ``rows`` rows, by default those under the windows of these lines.
    """

    function: str
    lines: str
    given: str
    together: int
    out: str = "out"
    rows: int = 0


def calls(layer: RoundedConvolution, called: Called) -> tuple[list[str], list[str]]:
    """Return the names of a convolution's inputs, and the C lines that compute its pixels."""
    spec, ctype = layer.spec, f"{layer.spec.dtype}_t"
    if layer.by_rows or layer.plain:
        names = [f"x{i}" for i in range(layer.sources)]
        pixels = integer(spec.output_shape[1] * spec.output_shape[2])
        if layer.by_rows:
            pixels = integer(spec.output_shape[2]) + (" * (int32_t)*n" if layer.plain else "")
        return names, [
            f"const {ctype} *const rows[] = {{{', '.join(names)}}};",
            f"{called.function}({called.given}, rows, {called.out}, {pixels});",
        ]
    names = [f"x{i}" for i in range(len(spec.pieces))]
    return names, [
        f"{STATIC} lines_{spec.dtype} l = {lines_fields(spec)};",
        f"const {ctype} *const pieces[] = {{{', '.join(names)}}};",
        f"const {ctype} *rows[{extent(called.rows or called.together * layer.sources)}];",
        f"{called.lines}({called.given}, &l, pieces, {called.out}, rows);",
    ]


def line_by_line(
    layer: RoundedConvolution, function: str, given: str, numbers: str
) -> tuple[list[str], list[str]]:
    """Return the names of a depthwise convolution's inputs, and the C lines that compute it.

    ``function`` computes a line from its rows; the function with a plural "s" computes a tensor.
    """
    dtype, rows = layer.spec.dtype, layer.spec.weight_shape[0]
    if layer.by_rows:
        names = [f"x{i}" for i in range(rows)]
        return names, [
            f"const {dtype}_t *const rows[] = {{{', '.join(names)}}};",
            f"{function}_{layer.name}({given}, rows, {numbers}, (uint8_t *)out);",
        ]
    return ["x0"], [
        f"{STATIC} lines_{dtype} l = {lines_fields(layer.spec)};",
        f"const {dtype}_t *rows[{extent(rows)}];",
        f"{function}s_{layer.name}({given}, &l, x0, {numbers}, (uint8_t *)out, rows);",
    ]


def reader(layer: RoundedConvolution) -> str:
    """Return the function of the library that reads windows."""
    spec, reading = layer.spec, "inside"
    if layer.gathers:
        reading = "gathered"
    elif any(spec.padding[1::2]) or spec.dilation[1] != 1:
        reading = "bordered"
    elif layer.sources == 1 and not any(spec.padding):
        reading = "single"
    return f"{reading}_{spec.dtype}"


def most_runs(layer: RoundedConvolution) -> int:
    """Return the maximum number of runs under the windows that are read together."""
    if layer.gathers:
        return 1
    spec, width = layer.spec, layer.spec.weight_shape[1]
    if layer.grouped or spec.dilation[1] != 1:
        return layer.sources * width
    return layer.sources * (min(width, MOST_STRETCHES) if any(spec.padding[1::2]) else 1)


def geometry(spec: Convolution) -> dict[str, int]:
    """Return the fields that position windows in a line: width, kernel, stride, padding."""
    return {
        "width": spec.pieces[0][2],
        "out_width": spec.output_shape[2],
        "kernel_height": spec.weight_shape[0],
        "kernel_width": spec.weight_shape[1],
        "stride_x": spec.strides[1],
        "dilation_x": spec.dilation[1],
        "left": spec.padding[1],
    }


def _lines(spec: Convolution) -> dict[str, int]:
    """Return the fields that position windows in the image: height, kernel, stride, padding."""
    return {
        "height": spec.pieces[0][1],
        "out_height": spec.output_shape[1],
        "kernel_height": spec.weight_shape[0],
        "stride_y": spec.strides[0],
        "dilation_y": spec.dilation[0],
        "top": spec.padding[0],
    }


def lines_fields(spec: Convolution) -> str:
    """Return the C initialiser of a ``lines``."""
    return initialiser(_lines(spec))


def target(layer: RoundedConvolution) -> str:
    """Return the C initialiser of a ``requantisation``."""
    r, rounding = layer.spec.requantise, layer.rounding
    numbers = ", ".join(map(integer, (r.zero_point, r.low, r.high)))
    return f"{{{numbers}, {rounding.name}, {integer(rounding.step)}}}"


def initialiser(fields: dict[str, Any]) -> str:
    """Return the C initialiser of a structure with ``fields``; integers are marked."""
    written = {n: integer(int(v)) if isinstance(v, Integral) else v for n, v in fields.items()}
    rows = "".join(f"        .{name} = {value},\n" for name, value in written.items())
    return f"{{\n{rows}    }}"


@dataclass(frozen=True)
class Shape:
    """The parameters of a kernel's C function: ``data`` that it reads, then the others.

    ``takes``: name and type of each constant. ``counts``: a row kernel takes the number of
    consecutive rows. ``workspace``: the function takes a workspace.
    """

    data: Sequence[str]
    takes: Sequence[tuple[str, str]]
    counts: bool = False
    workspace: bool = False


def columns(layer: RoundedConvolution, size: int) -> tuple[str, list[str]]:
    """Return the C expression of the columns of ``size`` inputs, and their declarations.

    Columns of a row kernel lie on its stack, others in its workspace; a size of 0 gives NULL.
    """
    if not size:
        return "NULL", []
    ctype = f"{layer.spec.dtype}_t"
    if layer.by_rows:
        return "columns", [f"{ctype} columns[{extent(size)}] {WORDS};"]
    return f"({ctype} *)(void *)workspace", []


def convolving(layer: RoundedConvolution, data: Sequence[str], gathers: bool) -> Shape:
    """Return the parameters of a convolution with biases, multipliers and shifts."""
    takes = [("w", "int8"), ("b", "int32"), ("m", "int32"), ("r", "int8")]
    takes += [("o", layer.spec.dtype)] * bool(layer.outside)
    return Shape(data, takes, layer.by_rows and layer.plain, gathers and not layer.by_rows)


def written(
    name: str, layer: RoundedConvolution, file: str, shape: Shape, lines: Sequence[str]
) -> Kernel:
    """Return a C function of ``lines`` that includes a ``file`` of the library."""
    spec = layer.spec
    params = [Param(at, spec.dtype, True) for at in shape.data]
    params += [Param(at, dtype, True) for at, dtype in shape.takes]
    params.append(Param("out", spec.requantise.dtype, False))
    params += [Param(COUNT, "uint32", True)] * shape.counts
    params += [Param("workspace", "uint8", False)] * shape.workspace
    body = "".join(f"    {line}\n" for line in lines)
    support = LibraryFile(file, spec.dtype, 4 if layer.narrow else 8)
    return Kernel(name, tuple(params), body, (support,))
