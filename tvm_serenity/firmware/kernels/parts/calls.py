"""Calls of the library in C: what its structures hold, a kernel of whole tensors or of rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm_serenity.firmware.kernels.parts.layer import RoundedConvolution
from tvm_serenity.firmware.program import Kernel, LibraryFile, Param
from tvm_serenity.kernels.records import Convolution

COUNT = "n"
"""The last parameter of row kernels that make several rows which follow each other: how many."""
WORDS = "__attribute__((aligned(4)))"
"""Of columns on the stack, which are filled by words."""
NO_BORDER = 1 << 30
"""A width that no window leaves."""
MOST_STRETCHES = 5
"""Of a row under two windows: each is outside, inside and outside again."""


def convolution_fields(layer: RoundedConvolution, read: str = "") -> str:
    """Return the C initialiser of a ``convolution``; ``read`` reads windows, if anything does."""
    spec = layer.spec
    fields = {
        "pieces": len(spec.pieces),
        **geometry(spec),
        **({"width": NO_BORDER, "out_width": NO_BORDER} if layer.plain else {}),
        "out_channels": spec.channels,
        "depth": layer.depth,
        "input_zero": spec.input_zero,
        "to": target(layer),
        **({"read": read} if read else {}),
        "channels": f"{{{', '.join(str(shape[3]) for shape in spec.pieces)}}}",
    }
    return initialiser(fields)


@dataclass(frozen=True)
class Called:
    """A function of the library that makes pixels of rows, its like for whole tensors.

    ``given`` is what they take first; whole tensors are made ``together`` lines at a time, from so
    many ``rows``, by default those under the windows of each.
    """

    function: str
    lines: str
    given: str
    together: int
    out: str = "out"
    rows: int = 0


def calls(layer: RoundedConvolution, called: Called) -> tuple[list[str], list[str]]:
    """Return the names of a convolution's inputs and the call that makes its pixels from them."""
    spec, ctype = layer.spec, f"{layer.spec.dtype}_t"
    if layer.by_rows or layer.plain:
        names = [f"x{i}" for i in range(layer.sources)]
        pixels = str(spec.output_shape[1] * spec.output_shape[2])
        if layer.by_rows:
            pixels = str(spec.output_shape[2]) + (" * (int32_t)*n" if layer.plain else "")
        return names, [
            f"const {ctype} *const rows[] = {{{', '.join(names)}}};",
            f"{called.function}({called.given}, rows, {called.out}, {pixels});",
        ]
    names = [f"x{i}" for i in range(len(spec.pieces))]
    return names, [
        f"static const lines_{spec.dtype} l = {lines_fields(spec)};",
        f"const {ctype} *const pieces[] = {{{', '.join(names)}}};",
        f"const {ctype} *rows[{called.rows or called.together * layer.sources}];",
        f"{called.lines}({called.given}, &l, pieces, {called.out}, rows);",
    ]


def line_by_line(
    layer: RoundedConvolution, function: str, given: str, numbers: str
) -> tuple[list[str], list[str]]:
    """Return the names of a depthwise convolution's inputs and the call that makes its lines.

    ``function`` makes a line from its rows, its like with an s behind it those of a whole tensor.
    """
    dtype, rows = layer.spec.dtype, layer.spec.weight_shape[0]
    if layer.by_rows:
        names = [f"x{i}" for i in range(rows)]
        return names, [
            f"const {dtype}_t *const rows[] = {{{', '.join(names)}}};",
            f"{function}_{layer.name}({given}, rows, {numbers}, (uint8_t *)out);",
        ]
    return ["x0"], [
        f"static const lines_{dtype} l = {lines_fields(layer.spec)};",
        f"const {dtype}_t *rows[{rows}];",
        f"{function}s_{layer.name}({given}, &l, x0, {numbers}, (uint8_t *)out, rows);",
    ]


def reader(layer: RoundedConvolution) -> str:
    """Return the function of the library that reads windows."""
    spec, how = layer.spec, "inside"
    if layer.gathers:
        how = "gathered"
    elif any(spec.padding[1::2]) or spec.dilation[1] != 1:
        how = "bordered"
    elif layer.sources == 1 and not any(spec.padding):
        how = "single"
    return f"{how}_{spec.dtype}"


def most_runs(layer: RoundedConvolution) -> int:
    """Return the most runs under the windows that are read together."""
    if layer.gathers:
        return 1
    spec, width = layer.spec, layer.spec.weight_shape[1]
    if layer.grouped or spec.dilation[1] != 1:
        return layer.sources * width
    return layer.sources * (min(width, MOST_STRETCHES) if any(spec.padding[1::2]) else 1)


def geometry(spec: Convolution) -> dict[str, int]:
    """Return how windows lie in a line."""
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
    """How lines lie in the image."""
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
    r, how = layer.spec.requantise, layer.rounding
    return f"{{{r.zero_point}, {r.low}, {r.high}, {how.name}, {how.step}}}"


def initialiser(fields: dict[str, Any]) -> str:
    """Return a C initialiser of a structure."""
    rows = "".join(f"        .{name} = {value},\n" for name, value in fields.items())
    return f"{{\n{rows}    }}"


@dataclass(frozen=True)
class Shape:
    """What a kernel's C function takes: ``data`` it reads, in order, then other parameters.

    ``takes``: name and type of each constant. ``counts``: of a row, how many follow each other.
    """

    data: Sequence[str]
    takes: Sequence[tuple[str, str]]
    counts: bool = False
    workspace: bool = False


def columns(layer: RoundedConvolution, size: int) -> tuple[str, list[str]]:
    """Return where so many gathered inputs lie, 0 for none, and what a kernel declares for it.

    Those of a row kernel lie on its stack, others in its workspace.
    """
    if not size:
        return "NULL", []
    ctype = f"{layer.spec.dtype}_t"
    if layer.by_rows:
        return "columns", [f"{ctype} columns[{size}] {WORDS};"]
    return f"({ctype} *)(void *)workspace", []


def convolving(layer: RoundedConvolution, data: Sequence[str], gathers: bool) -> Shape:
    """Return what a convolution takes whose numbers are biases, multipliers and shifts."""
    takes = [("w", "int8"), ("b", "int32"), ("m", "int32"), ("r", "int8")]
    takes += [("o", layer.spec.dtype)] * bool(layer.outside)
    return Shape(data, takes, layer.by_rows and layer.plain, gathers and not layer.by_rows)


def written(
    name: str, layer: RoundedConvolution, file: str, shape: Shape, lines: Sequence[str]
) -> Kernel:
    """Return a kernel of ``lines`` that calls a file of the library."""
    spec = layer.spec
    params = [Param(at, spec.dtype, True) for at in shape.data]
    params += [Param(at, dtype, True) for at, dtype in shape.takes]
    params.append(Param("out", spec.requantise.dtype, False))
    params += [Param(COUNT, "uint32", True)] * shape.counts
    params += [Param("workspace", "uint8", False)] * shape.workspace
    body = "".join(f"    {line}\n" for line in lines)
    support = LibraryFile(file, spec.dtype, 4 if layer.narrow else 8)
    return Kernel(name, tuple(params), body, (support,))
