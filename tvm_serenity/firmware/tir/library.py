"""Calls of the kernel library, in C: a kernel of a whole tensor, or of a row."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tvm_serenity.firmware.names import weighted
from tvm_serenity.firmware.pack import BLOCK, Rounding
from tvm_serenity.firmware.program import Array, Kernel, Param
from tvm_serenity.kernels.convolution import Convolution

COUNT = "n"
"""The last parameter of row kernels that make several rows which follow each other: how many."""
WORDS = "__attribute__((aligned(4)))"
"""Of columns on the stack, which are filled by words."""
NO_BORDER = 1 << 30
"""A width that no window leaves."""
JOINING = ("columns", "rows", "convolution", "dots", "fours", "pixels")
"""Files of the library for convolutions."""
GROUPED = ("columns", "rows", "convolution", "groups", "grouped")
"""Files of the library for convolutions of groups of channels, with vectors."""
NINES = ("taps", "rows", "nines")
"""Files of the library for depthwise convolutions of 3x3, with vectors."""
APART = ("taps", "rows", "eights", "depthwise")
"""Files of the library for depthwise convolutions."""
WEIGHTED = (
    *("dots", "fours", "pixels", "groups", "grouped"),
    *("taps", "nines", "eights", "depthwise"),
)
"""Files that depend on how weights are stored."""
MOST_STRETCHES = 5
"""Of a row under two windows: each is outside, inside and outside again."""


LANES = 16
"""Inputs of a vector."""
MOST_COLUMN_BYTES = 320
"""Row kernels have no workspace: windows that must be gathered and are larger stay with TIR's."""


def in_vectors(runs: Sequence[int]) -> int:
    """Return how many vectors runs of inputs fill, each from its beginning on."""
    return sum(-(-inputs // LANES) for inputs in runs)


@dataclass(frozen=True)
class RoundedConvolution:
    """A convolution with its weights less their zero point, and how its sums are rounded.

    ``by_rows``: its kernel makes a row; ``vectors``: the core has vector instructions. ``narrow``:
    weights fit into 4 bits, which the library then reads. ``gathered``: windows are gathered into
    columns, also where they need not be.
    """

    spec: Convolution
    weights: npt.NDArray[np.int8]
    bias: Array
    how: Rounding
    by_rows: bool = False
    vectors: bool = False
    narrow: bool = False
    gathered: bool = False

    @property
    def name(self) -> str:
        """How the library's functions for it are named."""
        return weighted(self.spec.dtype, 4 if self.narrow else 8)

    @property
    def depth(self) -> int:
        """Inputs in a window, in whole blocks."""
        return -(-int(np.prod(self.weights.shape[:-1])) // BLOCK) * BLOCK

    @property
    def plain(self) -> bool:
        """Whether each pixel is made from its own alone, so that lines may be joined."""
        spec = self.spec
        plain = spec.weight_shape[:2] == (1, 1) and spec.strides == (1, 1)
        return plain and not any(spec.padding)

    @property
    def sources(self) -> int:
        """Rows under a window, of all pieces."""
        return len(self.spec.pieces) * self.spec.weight_shape[0]

    @property
    def apart(self) -> bool:
        """Whether it is depthwise: every output reads its own input channel."""
        return self.spec.depthwise and self.spec.pieces[0][3] > 1

    @property
    def pairs(self) -> int:
        """Pairs of taps whose products of inputs and weights can be summed up in 16 bits."""
        if self.spec.dtype != "int8" or int(self.weights.min(initial=0)) == -128:
            return 0
        return self.spec.weight_shape[0] * self.spec.weight_shape[1] // 2

    @property
    def gathers(self) -> bool:
        """Whether windows are gathered into columns."""
        return self.gathered or self.must_gather

    @property
    def must_gather(self) -> bool:
        """Whether windows cannot be read where they lie."""
        if self.grouped:
            return self._groups_must_gather
        return any(shape[3] % BLOCK for shape in self.spec.pieces)

    @property
    def grouped(self) -> bool:
        """Whether groups of four outputs are summed with vectors (``library/groups.h``)."""
        if not self.vectors or self.narrow or self.apart or not self.how.name.endswith("_SMALL"):
            return False
        gathers = self.gathered or self._groups_must_gather
        return not (self.by_rows and gathers and 2 * self.depth > MOST_COLUMN_BYTES)

    @property
    def clamps_at_zero(self) -> bool:
        """Whether results below their zero point are clamped: halves below 0 round as they like."""
        return self.spec.requantise.zero_point <= self.spec.requantise.low

    @property
    def nines(self) -> bool:
        """Whether it is depthwise of 3x3 in the form of ``library/nines.h``."""
        spec, r = self.spec, self.spec.requantise
        limits = np.iinfo(spec.dtype)
        if not self.vectors or self.narrow or self.how.name != "ROUND_TWICE_SMALL":
            return False
        if spec.weight_shape[:2] != (3, 3) or spec.channels % 4 or r.dtype != spec.dtype:
            return False
        full = (r.low, r.high) == (limits.min, limits.max)
        return full and int(self.weights.min(initial=0)) > -128

    @property
    def stretches(self) -> list[int]:
        """Inputs in each row under a window, which groups read as one run."""
        kh, kw = self.spec.weight_shape[:2]
        return [kw * shape[3] for shape in self.spec.pieces for _ in range(kh)]

    @property
    def _groups_must_gather(self) -> bool:
        """Whether windows of groups are gathered: their runs would be ragged at a border."""
        may_leave = any(self.spec.padding[1::2]) or self.spec.dilation[1] != 1
        ragged = any(shape[3] % LANES for shape in self.spec.pieces)
        return ragged and may_leave and self.spec.weight_shape[1] > 1

    @cached_property
    def outside(self) -> int:
        """Elements that stand for pixels outside of the image, 0 where none are needed."""
        spec = self.spec
        if self.apart:
            return max(spec.channels, LANES) if self.nines else spec.channels
        if self.gathers or not any(spec.padding):
            return 0
        return spec.weight_shape[1] * max(shape[3] for shape in spec.pieces)


def convolution_fields(layer: RoundedConvolution, read: str = "") -> str:
    """Return the C initialiser of a ``convolution``; ``read`` reads windows, if anything does."""
    spec = layer.spec
    fields = {
        "pieces": len(spec.pieces),
        **_geometry(spec),
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


def convolution(name: str, layer: RoundedConvolution) -> Kernel:
    """Return the kernel of a convolution."""
    spec, ctype = layer.spec, f"{layer.spec.dtype}_t"
    fields = convolution_fields(layer, "" if layer.grouped else reader(layer))
    lines = [f"static const convolution_{spec.dtype} c = {fields};"]
    columns = "NULL"
    if layer.gathers and layer.by_rows:
        columns = "columns"
        lines.append(f"{ctype} columns[{2 * layer.depth}] {WORDS};")
    elif layer.gathers:
        columns = f"({ctype} *)(void *)workspace"
    outside = "o" if layer.outside else "NULL"
    run, held, also, form = f"run_{spec.dtype}", "runs", "", ""
    if layer.grouped:
        run, held, form = f"group_run_{layer.name}", "NULL", "groups_"
        also = f", runs, READ_{_read_by_groups(layer)}_{layer.name}"
    lines += [
        f"{run} runs[{most_runs(layer) + layer.grouped}];",
        f"const with_{spec.dtype} with = {{w, b, m, r, {outside}, {columns}, {held}}};",
    ]
    called = Called(
        f"convolve_{form}{layer.name}",
        f"convolve_lines_{form}{layer.name}",
        f"&c, &with{also}",
        3 if layer.grouped else 2,
        "(uint8_t *)out",
    )
    names, made = calls(layer, called)
    return _kernel(name, layer, names, [*lines, *made], GROUPED if layer.grouped else JOINING)


def depthwise(name: str, layer: RoundedConvolution) -> Kernel:
    """Return the kernel of a depthwise convolution."""
    spec, ctype = layer.spec, f"{layer.spec.dtype}_t"
    kh, _, channels = spec.weight_shape
    fields = {
        **_geometry(spec),
        "channels": channels,
        "pairs": layer.pairs,
        "to": target(layer),
    }
    line, how, numbers = "depthwise_line", "&d", "w, b, m, r, o"
    if layer.nines:
        positive = "_positive" if layer.clamps_at_zero else ""
        line, how, numbers = "nines_line", f"&d, nines{positive}_{layer.name}", "w, b, o"
    lines = [f"static const depthwise_{layer.name} d = {initialiser(fields)};"]
    if layer.by_rows:
        names = [f"x{i}" for i in range(kh)]
        lines += [
            f"const {ctype} *const rows[] = {{{', '.join(names)}}};",
            f"{line}_{layer.name}({how}, rows, {numbers}, (uint8_t *)out);",
        ]
    else:
        names = ["x0"]
        lines += [
            f"static const lines_{spec.dtype} l = {lines_fields(spec)};",
            f"const {ctype} *rows[{kh}];",
            f"{line}s_{layer.name}({how}, &l, x0, {numbers}, (uint8_t *)out, rows);",
        ]
    return _kernel(name, layer, names, lines, NINES if layer.nines else APART)


def reader(layer: RoundedConvolution) -> str:
    """Return the function of the library that reads windows."""
    return f"{_how_read(layer)}_{layer.spec.dtype}"


def _how_read(layer: RoundedConvolution) -> str:
    if layer.gathers:
        return "gathered"
    spec = layer.spec
    if any(spec.padding[1::2]) or spec.dilation[1] != 1:
        return "bordered"
    return "single" if layer.sources == 1 and not any(spec.padding) else "inside"


def _read_by_groups(layer: RoundedConvolution) -> str:
    if layer.gathers:
        return "GATHERED"
    return "PLAIN" if layer.plain and len(layer.spec.pieces) == 1 else "IN_PLACE"


def most_runs(layer: RoundedConvolution) -> int:
    """Return the most runs under the windows that are read together."""
    if layer.gathers:
        return 1
    spec, width = layer.spec, layer.spec.weight_shape[1]
    if layer.grouped or spec.dilation[1] != 1:
        return layer.sources * width
    return layer.sources * (min(width, MOST_STRETCHES) if any(spec.padding[1::2]) else 1)


def _geometry(spec: Convolution) -> dict[str, int]:
    """How windows lie in a line."""
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
    r, how = layer.spec.requantise, layer.how
    return f"{{{r.zero_point}, {r.low}, {r.high}, {how.name}, {how.step}}}"


def initialiser(fields: dict[str, Any]) -> str:
    """Return a C initialiser of a structure."""
    rows = "".join(f"        .{name} = {value},\n" for name, value in fields.items())
    return f"{{\n{rows}    }}"


def _kernel(
    name: str,
    layer: RoundedConvolution,
    data: Sequence[str],
    lines: Sequence[str],
    library: Sequence[str],
) -> Kernel:
    """A kernel of data, constants, pixels outside where it reads some, result and workspace."""
    spec = layer.spec
    params = [Param(at, spec.dtype, True) for at in data]
    params += [Param("w", "int8", True), Param("b", "int32", True)]
    if library is not NINES:
        params += [Param("m", "int32", True), Param("r", "int8", True)]
    params += [Param("o", spec.dtype, True)] if layer.outside else []
    params.append(Param("out", spec.requantise.dtype, False))
    joins = library in (JOINING, GROUPED)
    if layer.by_rows:
        params += [Param(COUNT, "uint32", True)] if joins and layer.plain else []
    elif joins and layer.gathers:
        params.append(Param("workspace", "uint8", False))
    body = "".join(f"    {line}\n" for line in lines)
    bits = ":4" if layer.narrow else ""
    support = (f"{file}.h:{spec.dtype}{bits * (file in WEIGHTED)}" for file in library)
    return Kernel(name, tuple(params), body, ("dot.h", "requantise.h", *support))
