"""The input rows that each row of a result depends on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.operators.scene import OptionsTable, Shape

Range = tuple[int, int]
"""Rows from the first up to, not including, the second."""

Need = tuple[Range, ...]
"""For each output row, the rows of one input it depends on; (0, 0) for none."""

SAME = 0
"""``Padding.SAME`` in an operator's options."""
_PADDING, _STRIDE_W, _STRIDE_H = 0, 1, 2
"""Option fields common to all operators with a window."""


@dataclass(frozen=True, kw_only=True)
class RowSources:
    """An operator of a file, and the axes of its inputs' rows.

    ``operands``: the numbers of its inputs that are not constants. ``axes``: their axes of rows,
    None for tensors without rows (``graph.row_axes``). ``shapes``: the shapes of all inputs.
    ``made``: the shape of the first output. ``constant(i)``: the integers of input ``i``, if it is
    a constant.
    """

    name: str
    kind: str
    operands: Sequence[int]
    axes: Sequence[int | None]
    shapes: Sequence[Shape]
    made: Shape
    options: OptionsTable
    constant: Callable[[int], Sequence[int]]


@dataclass(frozen=True, kw_only=True)
class Seen(RowSources):
    """An operator of a file, as row streaming needs it.

    ``height``: rows of its outputs. ``sources``: rows of its inputs that are not constants; 1 for
    tensors without rows. ``axis``: the axis of the first output's rows, None without rows.
    ``outputs``: the number of outputs.
    """

    height: int
    sources: Sequence[int]
    axis: int | None
    outputs: int

    def along(self, height: int, width: int) -> int:
        """Return the value for the axis of rows, of those for an image's height and width."""
        others = {a for a, n in zip(self.axes, self.sources, strict=True) if n > 1} - {self.axis}
        if self.axis not in (1, 2) or others:
            raise UnsupportedError(f"{self.kind} is computed row by row along one axis of an image")
        return height if self.axis == 1 else width


def window(
    height: int, source: int, size: int, stride: int, before: int, dilation: int = 1
) -> Need:
    """Return the input rows that ``height`` output rows of a window operator need.

    ``source``: input rows. The window has ``size`` taps, ``dilation`` rows apart, a ``stride``, and
    ``before`` rows of padding at the top.
    """
    reach = (size - 1) * dilation + 1
    return tuple(
        clipped(y * stride - before, y * stride - before + reach, source) for y in range(height)
    )


def rowwise(height: int, source: int) -> Need:
    """Return the needs of an elementwise operator: the same row, or the only row (broadcast)."""
    return tuple((y, y + 1) if source > 1 else (0, 1) for y in range(height))


def nearest(height: int, source: int) -> Need:
    """Return the needs of an integer upsampling without interpolation."""
    factor = height // source
    return tuple((y // factor, y // factor + 1) for y in range(height))


def everything(height: int, source: int) -> Need:
    """Return the needs of an operator that reads all rows, such as a global pool."""
    return ((0, source),) * height


def shifted(height: int, source: int, above: int) -> Need:
    """Return the needs of ``height`` rows if ``source`` input rows start at row ``above``."""
    return tuple(
        (y - above, y - above + 1) if 0 <= y - above < source else (0, 0) for y in range(height)
    )


def stacked(height: int, sources: Sequence[int]) -> tuple[Need, ...]:
    """Return the needs of rows that are a concatenation of several inputs' rows."""
    starts = [sum(sources[:i]) for i in range(len(sources))]
    return tuple(
        shifted(height, source, start) for source, start in zip(sources, starts, strict=True)
    )


def aligned_axis(op: RowSources) -> int | None:
    """Return the axis of the result of an elementwise operator along which all inputs have rows.

    None if they have rows along several axes. Axes are aligned at the last one.
    """
    rank = len(op.made)
    given = zip(op.operands, op.axes, strict=True)
    found = {axis + rank - len(op.shapes[i]) for i, axis in given if axis is not None}
    return found.pop() if len(found) == 1 else None


def on_elements(op: "Seen") -> tuple[Need, ...]:
    """Return the needs of an elementwise operator."""
    if any(source not in (1, op.height) for source in op.sources):
        raise UnsupportedError("its inputs have different heights")
    return tuple(rowwise(op.height, source) for source in op.sources)


def filter_rows(op: "Seen", operand: int) -> int:
    """Return the rows of a filter stored as (..., height, width, channels)."""
    shape = op.shapes[operand] if operand < len(op.shapes) else ()
    if len(shape) != 4:
        raise InputError(f"{op.name}: its filter has shape {list(shape)}; expected four axes")
    return op.along(shape[1], shape[2])


def row_stride(op: "Seen") -> int:
    """Return the stride along the rows of an operator whose options begin with padding."""
    return op.along(op.options.i32(_STRIDE_H), op.options.i32(_STRIDE_W))


def windowed(op: "Seen", size: int, dilation: int = 1) -> tuple[Need, ...]:
    """Return the needs of an operator whose options begin with padding and strides."""
    stride, source = row_stride(op), op.sources[0]
    if stride < 1 or size < 1 or dilation < 1:
        raise InputError(
            f"{op.name}: stride {stride}, filter height {size} and dilation {dilation} must "
            "be at least 1"
        )
    missing = max(0, (op.height - 1) * stride + (size - 1) * dilation + 1 - source)
    before = missing // 2 if op.options.u8(_PADDING) == SAME else 0
    return (window(op.height, source, size, stride, before, dilation),)


def clipped(first: int, end: int, source: int) -> Range:
    """Return the rows from ``first`` up to ``end`` that exist; (0, 0) if there are none."""
    first, end = max(0, first), min(source, end)
    return (first, end) if first < end else (0, 0)
