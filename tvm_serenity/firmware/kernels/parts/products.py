"""Products of two variable int8 matrices, row by row of the first: sizes, steps and calls."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from tvm_serenity.firmware.integers import STATIC, extent, integer
from tvm_serenity.firmware.kernels.pack import Rounding, rounding
from tvm_serenity.firmware.kernels.parts.calls import initialiser
from tvm_serenity.firmware.kernels.parts.layer import PlainLayer
from tvm_serenity.firmware.kernels.record import KernelOptions, Passages
from tvm_serenity.firmware.passage import Passage
from tvm_serenity.firmware.program import Kernel, LibraryFile, Param
from tvm_serenity.kernels.records import BatchMatmul

PRODUCT = "BatchMatmul"
"""The value of ``computes`` of the layers."""
MOST_OUTER = 3
"""The most axes of batches and rows; axes of one element do not count."""
LARGEST = 255 * 255
"""The bound of a product of two int8 values minus their zero points."""
BY_COLUMNS, BY_ROWS = "columns of the second matrix", "rows of the second matrix"
CASES = (BY_COLUMNS, BY_ROWS)
"""What is contiguous in the second matrix."""


@dataclass(frozen=True)
class Outer:
    """An axis of batches or rows: its extent, and its steps in both operands and the result."""

    extent: int
    steps: tuple[int, int, int]


@dataclass(frozen=True)
class Geometry:
    """Where the elements of a product are.

    ``outer``: the axes of batches and rows, in the order of the stored result. ``inner_steps``: of
    both operands, along the sums. ``column_step``: of the second operand. ``packed``: whether the
    columns of the result are contiguous.
    """

    outer: tuple[Outer, ...]
    inner: int
    columns: int
    inner_steps: tuple[int, int]
    column_step: int
    packed: bool

    @property
    def rows(self) -> int:
        """The number of rows of all batches."""
        return math.prod(axis.extent for axis in self.outer)

    @property
    def by_columns(self) -> bool:
        """Whether columns of the second operand are contiguous."""
        return self.inner_steps[1] == 1 or self.inner == 1

    @property
    def in_order(self) -> bool:
        """Whether the rows of the first operand and of the result follow one another."""
        sizes = [axis.extent for axis in self.outer]
        after = [1, *accumulate(reversed(sizes), int.__mul__)][: len(sizes)][::-1]
        return self.inner_steps[0] == 1 and all(
            axis.steps[0] == n * self.inner and axis.steps[2] == n * self.columns
            for axis, n in zip(self.outer, after, strict=True)
        )


def geometry(layer: PlainLayer) -> Geometry:
    """Return where the elements of the product of ``layer`` are."""
    spec = layer.spec
    rows, inner, columns = spec.sizes
    *batches, _, _ = spec.output_shape
    made = _steps(spec.output_shape, spec.axes[2])
    first, second = (_steps(spec.shapes[i], spec.axes[i]) for i in (0, 1))
    flip_x, flip_y = spec.adjoint
    row, along = (first[-1], first[-2]) if flip_x else (first[-2], first[-1])
    column, down = (second[-2], second[-1]) if flip_y else (second[-1], second[-2])
    left = _broadcast(spec.shapes[0], first, len(batches))
    right = _broadcast(spec.shapes[1], second, len(batches))
    sizes = [*batches, rows]
    if layer.by_rows:
        sizes[(spec.axes[2] or range(len(made)))[1]] = 1
    axes = [
        Outer(n, (of_left, of_right, of_result))
        for n, of_left, of_right, of_result in zip(
            sizes, [*left, row], [*right, 0], made[:-1], strict=True
        )
        if n > 1
    ]
    axes.sort(key=lambda axis: -axis.steps[2])
    packed = made[-1] == 1 or columns == 1
    return Geometry(tuple(axes), inner, columns, (along, down), column, packed)


def _steps(shape: Sequence[int], axes: Sequence[int]) -> list[int]:
    """Return the steps of each axis of a tensor that is stored with the axes in another order."""
    found, step = [0] * len(shape), 1
    for axis in reversed(axes or range(len(shape))):
        found[axis], step = step, step * shape[axis]
    return found


def _broadcast(shape: Sequence[int], steps: Sequence[int], batches: int) -> list[int]:
    """Return the steps of an operand along the batches of the result."""
    own = [step if n > 1 else 0 for n, step in zip(shape[:-2], steps[:-2], strict=True)]
    return [0] * (batches - len(own)) + own


def rounded(layer: PlainLayer) -> Rounding | None:
    """Return the rounding of the sums, None if the library lacks it."""
    spec, m = layer.spec, layer.spec.multiplier
    largest = np.asarray([spec.sizes[1] * LARGEST])
    return rounding(spec.rounding, m.value, m.shift, largest)


def refuses(layer: PlainLayer) -> str:
    """Return why ``layer`` is no product of int8 matrices that is read in runs, "" if it is."""
    spec: BatchMatmul = layer.spec
    if {params.dtype for params in (*spec.sources, spec.result)} != {"int8"}:
        return "supports only products of int8 matrices"
    if layer.by_rows and layer.slots not in ((0,), (0, 1)):
        return "supports only products by rows of the first matrix"
    if layer.by_rows and any(len(shape) != len(spec.output_shape) for shape in spec.shapes):
        return "supports only products by rows of matrices with as many axes as the product"
    how = geometry(layer)
    if len(how.outer) > MOST_OUTER:
        return f"supports only products with at most {MOST_OUTER} axes of batches and rows"
    if not how.packed or (not how.by_columns and how.column_step != 1 and how.columns > 1):
        return "supports only products with contiguous rows or columns"
    finish = rounded(layer)
    return "" if finish is not None and finish.small else "supports only multipliers below 1"


def function(name: str, layer: PlainLayer, file: str, row: tuple[str, str], buffer: str) -> Kernel:
    """Return the C function of a product.

    ``row``: the library's functions for a row, for contiguous columns and contiguous rows of the
    second matrix. ``buffer``: the declaration of the array ``buffer`` for a row of the first one,
    "" if it is workspace.
    """
    how = geometry(layer)
    lines = [buffer] if buffer else []
    lines.append(f"{STATIC} products p = {initialiser(_fields(layer))};")
    held = "buffer" if buffer else "workspace"
    lines.append(f"each_row(&p, a, b, out, {row[not how.by_columns]}, {held});")
    params = [Param("a", "int8", True), Param("b", "int8", True), Param("out", "int8", False)]
    params += [Param("workspace", "uint8", False)] * (not buffer)
    body = "".join(f"    {line}\n" for line in lines)
    return Kernel(name, tuple(params), body, (LibraryFile(file),))


def on_stack(ctype: str, elements: int) -> str:
    """Return the declaration of the array of a row."""
    return f"{ctype} buffer[{extent(elements)}] __attribute__((aligned(8)));"


def _fields(layer: PlainLayer) -> dict[str, int | str]:
    spec, how, finish = layer.spec, geometry(layer), rounded(layer)
    assert finish is not None, "a layer that is not refused"
    outer = [Outer(1, (0, 0, 0))] * (MOST_OUTER - len(how.outer)) + list(how.outer)

    def each(values: Sequence[int]) -> str:
        return f"{{{', '.join(map(integer, values))}}}"

    numbers = (spec.result.zero_point, *spec.result.limits)
    return {
        "extents": each([axis.extent for axis in outer]),
        **{
            f"{name}_steps": each([axis.steps[i] for axis in outer])
            for i, name in enumerate(("a", "b", "out"))
        },
        "inner": how.inner,
        "columns": how.columns,
        "a_step": how.inner_steps[0],
        "b_step": how.column_step if how.by_columns else how.inner_steps[1],
        "a_zero": spec.sources[0].zero_point,
        "b_zero": spec.sources[1].zero_point,
        "multiplier": int(finish.multipliers[0]),
        "shift": int(finish.shifts[0]),
        "to": f"{{{', '.join(map(integer, numbers))}, {finish.name}, {integer(0)}}}",
    }


def passages(layer: PlainLayer, _options: KernelOptions) -> Passages:
    """Return the passages: a row of the first matrix is read before its results are written."""
    how = geometry(layer)
    row = Passage(1, how.rows, how.inner, 1, how.rows, how.columns)
    return (row if how.in_order else None, None)


def case(layer: PlainLayer, _options: KernelOptions) -> str:
    """Return the case of the kernel's price table that prices ``layer``."""
    return BY_COLUMNS if geometry(layer).by_columns else BY_ROWS


def counts(layer: PlainLayer, tile: int, lanes: int) -> list[float]:
    """Return the counts of calls, rows, inputs of rows, tiles of columns, and their blocks.

    ``tile``: columns that are computed together. ``lanes``: inputs that are summed together.
    """
    how = geometry(layer)
    tiles, rest = divmod(how.columns, tile)
    blocks, last = divmod(how.inner, lanes)
    return [
        1,
        how.rows,
        how.rows * how.inner,
        how.rows * tiles,
        how.rows * tiles * blocks,
        how.rows * tiles * last,
        how.rows * rest,
        how.rows * rest * how.inner,
    ]
