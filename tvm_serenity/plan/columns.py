"""Buffers as columns, which need far less memory and time than objects for 100,000 buffers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import overload

import numpy as np

from tvm_serenity.errors import InputError
from tvm_serenity.graph.arrays import Ints
from tvm_serenity.plan.buffers import MAX_BYTES, Buffer


@dataclass(frozen=True, slots=True)
class BufferColumns:
    """The fields that every buffer has, as columns; lifetimes are half open, sizes in bytes."""

    name: Sequence[str]
    lower: Ints
    upper: Ints
    size_bytes: Ints
    alignment: Ints

    @staticmethod
    def of(buffers: Sequence[Buffer]) -> "BufferColumns":
        """Return the columns of ``buffers``, without their other constraints."""
        if isinstance(buffers, FreeBuffers):
            return buffers.columns
        lower, upper, size, alignment = (
            np.fromiter(map(attrgetter(field), buffers), dtype=np.int64, count=len(buffers))
            for field in ("lower", "upper", "size_bytes", "alignment")
        )
        return BufferColumns([b.name for b in buffers], lower, upper, size, alignment)


@dataclass(frozen=True, slots=True, eq=False)
class FreeBuffers(Sequence[Buffer]):
    """A sequence of buffers with a size, a lifetime and an alignment, and no other constraint.

    Raises :class:`InputError` if columns differ in length or a :class:`Buffer` would be invalid.
    """

    columns: BufferColumns

    def __post_init__(self) -> None:
        c, count = self.columns, len(self)
        if any(len(column) != count for column in (c.lower, c.upper, c.size_bytes, c.alignment)):
            raise InputError(
                f"FreeBuffers: the columns differ in length; each must have {count} entries, as "
                "the names have"
            )
        wrong = (c.size_bytes < 0) | (c.size_bytes > MAX_BYTES)
        wrong |= (c.alignment < 1) | (c.alignment > MAX_BYTES)
        wrong |= (c.lower < -MAX_BYTES) | (c.lower > c.upper) | (c.upper > MAX_BYTES)
        for index in np.flatnonzero(wrong)[:1]:
            self._at(int(index))  # The constructor of the buffer raises the error.

    def __iter__(self) -> Iterator[Buffer]:
        c = self.columns
        numbers = (c.lower, c.upper, c.size_bytes, c.alignment)
        return map(Buffer, c.name, *(column.tolist() for column in numbers))

    def __len__(self) -> int:
        return len(self.columns.name)

    @overload
    def __getitem__(self, index: int) -> Buffer: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Buffer, ...]: ...
    def __getitem__(self, index: int | slice) -> Buffer | tuple[Buffer, ...]:
        """Return one buffer or a slice of buffers, created on demand."""
        if isinstance(index, slice):
            return tuple(map(self._at, range(*index.indices(len(self)))))
        return self._at(index)

    def _at(self, index: int) -> Buffer:
        c = self.columns
        lower, upper, size = (int(column[index]) for column in (c.lower, c.upper, c.size_bytes))
        return Buffer(c.name[index], lower, upper, size, int(c.alignment[index]))


def constrained(buffers: Sequence[Buffer]) -> Sequence[Buffer]:
    """Return ``buffers``, or an empty sequence for :class:`FreeBuffers`.

    The result contains all buffers that have constraints other than an alignment.
    """
    return () if isinstance(buffers, FreeBuffers) else buffers


def joined(parts: Sequence[FreeBuffers]) -> FreeBuffers:
    """Return the concatenation of ``parts``."""
    columns = [part.columns for part in parts]
    name = [name for part_columns in columns for name in part_columns.name]
    numbers = (
        np.concatenate(
            [getattr(part_columns, field) for part_columns in columns]
            or [np.zeros(0, dtype=np.int64)]
        )
        for field in ("lower", "upper", "size_bytes", "alignment")
    )
    return FreeBuffers(BufferColumns(name, *numbers))
