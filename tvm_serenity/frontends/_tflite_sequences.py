"""Sequences that loops compute: concatenated tensors as lists of their operands.

An iteration concatenates the slice before its step, the step, and the slice after it. Expanded,
each iteration would read the previous copy twice. Here the last copy concatenates the steps
directly, and nothing reads the copies in between.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tvm_serenity.frontends._flatbuffer import Table
from tvm_serenity.operators.scene import Array, Shape

_AXIS_OF_JOINED, _ACTIVATION_OF_JOINED = 0, 1


@dataclass(frozen=True)
class Joined:
    """A concatenated tensor: its axis, and each operand with its extent along that axis."""

    axis: int
    parts: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Cut:
    """A slice within one operand of a concatenated tensor: the operand, start and size."""

    tensor: int
    begin: Array
    size: Array


@dataclass
class Sequences:
    """The concatenated tensors of a graph while loops are expanded into it.

    ``shape`` and ``scales`` are functions that return the shape and the quantisation of a tensor.
    Operands whose scales differ from the scales of the result are not merged.
    """

    shape: Callable[[int], Shape]
    scales: Callable[[int], object]
    found: dict[int, Joined] = field(default_factory=dict)

    def join(self, given: Sequence[int], made: object, options: Table) -> Joined | None:
        """Return the operands of a CONCATENATION, flattened; None if they cannot be merged.

        ``made``: the scales of its result.
        """
        if options.u8(_ACTIVATION_OF_JOINED):
            return None
        axis = options.i32(_AXIS_OF_JOINED) % max(1, len(self.shape(given[0])))
        parts: list[tuple[int, int]] = []
        for tensor in given:
            if self.scales(tensor) != made:
                return None
            known = self.found.get(tensor)
            if known is not None and known.axis == axis:
                parts += known.parts
            else:
                parts.append((tensor, self.shape(tensor)[axis]))
        return Joined(axis, tuple(parts))

    def cut(self, tensor: int, begin: Array, size: Array) -> Joined | Cut | None:
        """Return a SLICE of a concatenated tensor as operands, or as a slice of one operand."""
        known, shape = self.found.get(tensor), self.shape(tensor)
        if known is None or begin.shape != size.shape or begin.shape != (len(shape),):
            return None
        extents = np.where(size < 0, np.array(shape) - begin, size)
        beside = np.arange(len(shape)) != known.axis
        if (begin[beside] != 0).any() or (extents != np.array(shape))[beside].any():
            return None
        first, last = int(begin[known.axis]), int(begin[known.axis] + extents[known.axis])
        inside, at = [], 0
        for part, extent in known.parts:
            if first <= at and at + extent <= last:
                inside.append((part, extent))
            elif at <= first and last <= at + extent:
                moved = begin.copy()
                moved[known.axis] -= at
                return Cut(part, moved, extents)
            at += extent
        if sum(extent for _, extent in inside) != last - first or not inside:
            return None
        return Joined(known.axis, tuple(inside))
