"""Write the kernel of a chain of layers that run together in column tiles (``rows.tiles``).

It is composed of the library's row kernels for other widths: the 1x1 convolutions before (head) and
after (tail) for any number of pixels, the windowed convolution for the pixels of a tile. With a
head, the window reads rows that the head has computed, including padding with zero points. Without
a head it reads the input rows themselves, and a variant of its kernel exists for each kind of
border among the tiles.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tvm_serenity.firmware.c_names import C_TYPES
from tvm_serenity.firmware.kernels.parts.calls import COUNT
from tvm_serenity.firmware.kernels.record import KernelForm, LibraryCall, NotCovered
from tvm_serenity.firmware.lower.flatten import flattened
from tvm_serenity.firmware.lower.inline import Inlined
from tvm_serenity.firmware.lower.statements import write
from tvm_serenity.firmware.program import Array, Kernel, LibraryFile, Param
from tvm_serenity.firmware.select.library import of_rows
from tvm_serenity.firmware.select.lowered import LoweredLayer
from tvm_serenity.firmware.select.rows import RowKernels
from tvm_serenity.kernels.convolution import Convolution
from tvm_serenity.kernels.rows import RowKernel, RowParam
from tvm_serenity.relax.row_chains import convolutions, sums_of
from tvm_serenity.relax.rows_read import LayerKernel
from tvm_serenity.rows.tiles import Columns, Tiled

MOST_BORDERS = 7
"""Largest number of border variants of a chain without a head; chains with more are not tiled."""
OUT, SOURCES = "out", "x"
"""The result parameter of row kernels, and the name prefix of the rows that they read."""


class Chained:
    """The kernel of a chain while it is being written."""

    def __init__(self, kernels: RowKernels, one: Tiled) -> None:
        self.kernels, self.chain, self.tile = kernels, one.chain, one.tile
        self.columns: Columns = one.chain.columns
        self.specs = convolutions(kernels.rows)
        self.constants: list[Array] = []
        self.support: dict[LibraryFile, None] = {}

    @property
    def between(self) -> tuple[int, ...]:
        """The features between the chain's layers, from first to last."""
        layers = (self.kernels.network.layers[i] for i in self.chain.layers[:-1])
        return tuple(layer.outputs[0] for layer in layers)

    def layer(self) -> LayerKernel:
        """Return the chain as one layer, which reads the rows that its window reads."""
        last, window = self._known(self.chain.layers[-1]), self._known(self.chain.window).rows
        assert window is not None
        slots = tuple(RowParam(0, slot.rows) for slot in window.slots)
        rows = RowKernel((None,), (0,) * len(window.variant_of), slots, {})
        name = f"{last.name}_tiles"
        return LayerKernel(name, (0,), (), rows=last.rows if self._sums else rows)

    def code(self) -> LoweredLayer:
        """Return the chain's kernels in C; raise :class:`NotCovered` if the library lacks one."""
        head = self._plain(self.chain.head)
        borders = self._borders() if head is None else ((0, 0),)
        windows = [self._window(border) for border in borders]
        bodies = [self._lines(head, windows, tail) for tail in self._tails()]
        sources = [Param(n, self._spec(self.chain.layers[0]).dtype, True) for n in self._sources()]
        constants = [
            Param(f"constant{i}", str(a.dtype), True) for i, a in enumerate(self.constants)
        ]
        params = [*sources, *constants, Param("result", self._result_type(), False)]
        size = self.chain.workspace_bytes(self.tile)
        params += [Param("room", "uint8", False)] * (size > 0)
        name = f"{self._known(self.chain.layers[-1]).name}_tiles"
        kernels = [
            Kernel(
                f"{name}{number if len(bodies) > 1 else ''}",
                tuple(params),
                "".join(f"    {line}\n" for line in lines),
                tuple(self.support),
            )
            for number, lines in enumerate(bodies)
        ]
        return LoweredLayer(
            tuple(kernels),
            tuple(self.constants),
            tuple(range(len(sources))),
            size,
            library=True,
            joined=tuple(self.kernels.network.layers[i].name for i in self.chain.layers),
        )

    @property
    def _sums(self) -> bool:
        """Whether the chain's result is a tensor of sums that are not requantized yet."""
        return self.kernels.network.layers[self.chain.layers[-1]].sums

    def _result_type(self) -> str:
        last = self.kernels.network.layers[self.chain.layers[-1]]
        return self.kernels.network.features[last.outputs[0]].dtype

    def _tails(self) -> list[list[str]]:
        """Return the lines by which each kernel of the chain processes a tile after the window."""
        if self.chain.tail is None:
            return [[]]
        if self._sums:
            begin, add = self._sums_of_tiles()
            first = ["    if (tile == 0) {", *begin, "    } else {", *add, "    }"]
            return [first, add]
        tail, spec = self._plain(self.chain.tail), self._spec(self.chain.tail)
        assert tail is not None
        given = {
            f"{SOURCES}0": "between",
            OUT: f"result + tile * {self.tile * spec.channels}",
            COUNT: "&pixels",
        }
        return [[f"    pixels = {self.tile};", *tail.called(given, 1)]]

    def _sums_of_tiles(self) -> tuple[list[str], list[str]]:
        """Return the lines of the TIR kernels that begin sums with a tile and that add a tile."""
        assert self.chain.tail is not None
        found = sums_of(self.kernels.rows, self.chain.tail, self.tile)
        assert found is not None
        lines = []
        for name, function in flattened({"begin": found.begin, "add": found.add}).items():
            made = write(name, function)
            if made.workspace_bytes:
                raise NotCovered("has no kernel of sums that needs workspace")
            read, sums = made.kernel.params
            given = {read.name: "between", sums.name: "result"}
            lines.append(
                (name == "add", Inlined(made.kernel, ()).called(given, 2 - (name == "add")))
            )
        (_, begin), (_, add) = sorted(lines, key=lambda one: one[0])
        return begin, add

    def _known(self, layer: int) -> LayerKernel:
        kernel = self.kernels.rows.kernels[layer]
        assert kernel is not None
        return kernel

    def _spec(self, layer: int) -> Convolution:
        spec = self.specs[layer]
        assert spec is not None
        return spec

    def _sources(self) -> list[str]:
        return [f"source{i}" for i in range(self.chain.kernel_rows)]

    def _borders(self) -> tuple[tuple[int, int], ...]:
        found = self.columns.borders(self.tile)
        if len(found) > MOST_BORDERS:
            raise NotCovered(f"has at most {MOST_BORDERS} variants of tiles at borders")
        return found

    def _plain(self, layer: int | None) -> Inlined | None:
        """Return the kernel of a 1x1 convolution for any number of pixels."""
        if layer is None:
            return None
        spec = self._spec(layer)
        usual = self.tile * (1 if layer == self.chain.tail else self.columns.stride)
        form = self._cheapest(layer, _of_width(spec, usual)).form
        return self._part(self._cheapest(layer, _of_width(spec, 1), form))

    def _window(self, border: tuple[int, int]) -> Inlined:
        """Return the window's kernel for a tile with ``border`` padded pixels left and right."""
        spec, (before, behind) = self._spec(self.chain.window), border
        (top, _, bottom, _) = spec.padding
        width = self.columns.span(self.tile) - before - behind
        spec = replace(_of_width(spec, width), padding=(top, before, bottom, behind))
        return self._part(self._cheapest(self.chain.window, spec))

    def _cheapest(
        self, layer: int, spec: Convolution, form: KernelForm | None = None
    ) -> LibraryCall:
        """Return the library's cheapest row kernel without workspace, or that of ``form``."""
        kernel = self._known(layer)
        for one in of_rows(kernel.name, spec, kernel.constants, self.kernels.core):
            if not one.workspace_bytes and form in (None, one.form):
                return one
        raise NotCovered("has no kernel without workspace for rows of this width")

    def _part(self, made: LibraryCall) -> Inlined:
        self.support |= dict.fromkeys(made.kernel.support)
        names = tuple(f"constant{self._number(array)}" for array in made.constants)
        return Inlined(made.kernel, names)

    def _number(self, array: Array) -> int:
        """Return the number of a constant; equal constants have one number."""
        for number, known in enumerate(self.constants):
            if known.dtype == array.dtype and np.array_equal(known, array):
                return number
        self.constants.append(array)
        return len(self.constants) - 1

    def _lines(
        self, head: Inlined | None, windows: Sequence[Inlined], tail: Sequence[str]
    ) -> list[str]:
        """Return the body of the kernel; ``tail`` is appended after the windows of a tile."""
        columns, tile = self.columns, self.tile
        spec, rows = self._spec(self.chain.window), ", ".join(self._sources())
        made, read = C_TYPES[spec.requantise.dtype], C_TYPES[self._spec(self.chain.layers[0]).dtype]
        lines = [f"const {read} *const sources[] = {{{rows}}};"]
        if tail:
            at = self.chain.kept_bytes(tile)
            lines.append(f"{made} *const between = ({made} *)(void *)(room + {at});")
        if head is not None or (tail and not self._sums) or _counts(windows):
            lines.append("uint32_t pixels;")
        lines += [
            f"const {C_TYPES[spec.dtype]} *under[{self.chain.kernel_rows}];",
            f"for (int32_t tile = 0; tile < {columns.out_width // tile}; ++tile) {{",
            f"    const int32_t first = tile * {tile * columns.stride} - {columns.left};",
            f"    for (int32_t line = 0; line < {self.chain.kernel_rows}; ++line) {{",
            *(self._read_lines() if head is None else self._made_lines(head)),
            "    }",
        ]
        result = "between" if tail else f"result + tile * {tile * spec.channels}"
        lines += self._window_lines(windows, result)
        return [*lines, *tail, "}"]

    def _read_lines(self) -> list[str]:
        """Return the lines that point to the input rows under the windows of a tile."""
        channels = self._spec(self.chain.window).pieces[0][3]
        return [
            f"        under[line] = sources[line] == NULL ? NULL\n"
            f"            : sources[line] + (first < 0 ? 0 : first) * {channels};"
        ]

    def _made_lines(self, head: Inlined) -> list[str]:
        """Return the lines with which the head computes the rows under the windows of a tile."""
        spec, before, columns = self._spec(self.chain.window), self.chain.head, self.columns
        assert before is not None
        span, n, ctype = columns.span(self.tile), spec.pieces[0][3], C_TYPES[spec.dtype]
        inputs, zero = self._spec(before).pieces[0][3], spec.input_zero & 0xFF
        shared = columns.shared() if self.tile < columns.out_width else 0
        moved = [
            "if (tile > 0) {",
            f"    (void)memmove(kept, kept + {(span - shared) * n}, {shared * n});",
            f"    from += {shared};",
            "}",
        ]
        left = [
            "if (begin > from) {",
            f"    (void)memset(kept + (from - first) * {n}, {zero}, "
            f"(size_t)(begin - from) * {n}u);",
            "}",
        ]
        right = [
            f"if (stop < first + {span}) {{",
            f"    (void)memset(kept + (stop - first) * {n}, {zero}, "
            f"(size_t)(first + {span} - stop) * {n}u);",
            "}",
        ]
        given = {
            "x0": f"sources[line] + begin * {inputs}",
            OUT: f"kept + (begin - first) * {n}",
            COUNT: "&pixels",
        }
        lines = [
            "under[line] = NULL;",
            "if (sources[line] == NULL) {",
            "    continue;",
            "}",
            f"{ctype} *const kept = ({ctype} *)(void *)room + line * {span * n};",
            "under[line] = kept;",
            f"{'int32_t' if shared else 'const int32_t'} from = first;",
            *(moved if shared else []),
            "const int32_t begin = from < 0 ? 0 : from;",
            f"int32_t stop = first + {span} < {columns.width} ? first + {span} : {columns.width};",
            "stop = stop < begin ? begin : stop;",
            *left,
            "if (stop > begin) {",
            "    pixels = (uint32_t)(stop - begin);",
            *head.called(given, 1),
            "}",
            *right,
        ]
        return [" " * 8 + line for line in lines]

    def _window_lines(self, windows: Sequence[Inlined], result: str) -> list[str]:
        """Return the lines that compute the window's pixels of a tile, by its border variant."""
        given = {f"{SOURCES}{i}": f"under[{i}]" for i in range(self.chain.kernel_rows)}
        given |= {OUT: result, COUNT: "&pixels"}
        lines = ["    pixels = 1;"] if _counts(windows) else []
        if len(windows) == 1:
            return [*lines, *windows[0].called(given, 1)]
        borders = self._borders()
        for number, part in enumerate(windows):
            tiles = range(0, self.columns.out_width, self.tile)
            mine = [
                i
                for i, at in enumerate(tiles)
                if self.columns.border(at, self.tile) == borders[number]
            ]
            runs = f"tile >= {mine[0]} && tile <= {mine[-1]}"
            lines += [f"    if ({runs}) {{", *part.called(given, 2), "    }"]
        return lines


def _counts(parts: Sequence[Inlined]) -> bool:
    """Return whether a kernel has a parameter for the number of consecutive rows."""
    return any(param.name == COUNT for part in parts for param in part.kernel.params)


def _of_width(spec: Convolution, width: int) -> Convolution:
    """Return the same convolution for rows of ``width`` pixels."""
    n, height, _, channels = spec.pieces[0]
    return replace(spec, pieces=((n, height, width, channels),))
