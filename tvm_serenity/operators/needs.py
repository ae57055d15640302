"""Which rows of an input each row of a result is made from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.operators.scene import OptionsTable, Shape

Range = tuple[int, int]
"""Rows from the first to before the second."""

Need = tuple[Range, ...]
"""For each output row, the rows of one input it is made from; (0, 0) where it needs none."""

SAME = 0
"""``Padding.SAME`` in options."""
_PADDING, _STRIDE_H = 0, 2
"""Fields that the options of all operators with a window have."""


@dataclass(frozen=True)
class Seen:
    """An operator of a file as rows see it.

    ``height`` is that of its outputs, ``sources`` are those of its inputs that are no constants:
    the rows of an NHWC tensor of batch 1, and 1 for what has no rows. ``shapes`` are those of all
    inputs; ``constant(i)`` gives the integers of input ``i``, none where it has none. ``outputs``
    counts the outputs.
    """

    name: str
    kind: str
    height: int
    sources: Sequence[int]
    outputs: int
    shapes: Sequence[Shape]
    options: OptionsTable
    constant: Callable[[int], Sequence[int]]


def window(
    height: int, source: int, size: int, stride: int, before: int, dilation: int = 1
) -> Need:
    """Return what ``height`` rows need of ``source`` ones: a window over rows.

    ``size`` taps ``dilation`` rows apart, every ``stride`` rows, ``before`` rows of padding above.
    """
    reach = (size - 1) * dilation + 1
    return tuple(
        clipped(y * stride - before, y * stride - before + reach, source) for y in range(height)
    )


def rowwise(height: int, source: int) -> Need:
    """Return the need of an operator on elements: the same row, or the only one (broadcast)."""
    return tuple((y, y + 1) if source > 1 else (0, 1) for y in range(height))


def nearest(height: int, source: int) -> Need:
    """Return the need of an upsampling by an integer factor without interpolation."""
    factor = height // source
    return tuple((y // factor, y // factor + 1) for y in range(height))


def everything(height: int, source: int) -> Need:
    """Return the need of a layer that reads all rows, wherever they lie: a global pooling."""
    return ((0, source),) * height


def shifted(height: int, source: int, above: int) -> Need:
    """Return the need of ``height`` rows that have ``source`` rows ``above`` rows from the top."""
    return tuple(
        (y - above, y - above + 1) if 0 <= y - above < source else (0, 0) for y in range(height)
    )


def stacked(height: int, sources: Sequence[int]) -> tuple[Need, ...]:
    """Return the needs of the rows of several inputs put one after the other."""
    starts = [sum(sources[:i]) for i in range(len(sources))]
    return tuple(
        shifted(height, source, start) for source, start in zip(sources, starts, strict=True)
    )


def on_elements(op: "Seen") -> tuple[Need, ...]:
    """Return the needs of an operator on elements."""
    if any(source not in (1, op.height) for source in op.sources):
        raise UnsupportedError("its inputs differ in height")
    return tuple(rowwise(op.height, source) for source in op.sources)


def filter_height(op: "Seen", operand: int) -> int:
    """Return the rows of a filter, stored as (..., height, width, channels)."""
    shape = op.shapes[operand] if operand < len(op.shapes) else ()
    if len(shape) != 4:
        raise InputError(f"{op.name}: a filter of shape {list(shape)}")
    return shape[1]


def windowed(op: "Seen", size: int, dilation: int = 1) -> tuple[Need, ...]:
    """Return the need of an operator whose options begin with a padding and strides."""
    stride, source = op.options.i32(_STRIDE_H), op.sources[0]
    if stride < 1 or size < 1 or dilation < 1:
        raise InputError(f"{op.name}: stride {stride}, {size} taps, dilation {dilation}")
    missing = max(0, (op.height - 1) * stride + (size - 1) * dilation + 1 - source)
    before = missing // 2 if op.options.u8(_PADDING) == SAME else 0
    return (window(op.height, source, size, stride, before, dilation),)


def clipped(first: int, end: int, source: int) -> Range:
    """Return the rows from ``first`` to before ``end`` that there are; (0, 0) if none."""
    first, end = max(0, first), min(source, end)
    return (first, end) if first < end else (0, 0)
