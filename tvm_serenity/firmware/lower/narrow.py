"""Stores constants in fewer bytes without a change of their values.

Files hold weights as float16, or as 8-bit integers and scales, and importers widen them. A float32
constant is stored as float16 if all its values are float16, or as 8-bit integers if all values are
integers times a scale (one scale, or one for each index of an axis). An int8 constant with 4-bit
values is stored with two values per byte. The kernel widens what it loads (``widen``). The values
decide, whatever their origin, and all of them are checked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
LEAST_ELEMENTS = 256
"""The least number of elements; smaller constants are not changed."""
HALVES, NIBBLES = "uint16", "uint8"
"""The storage types of float16, and of pairs of 4-bit integers."""
_LARGEST = 127
_NEAR = 4
"""The float32 steps around a quotient in which a scale is searched."""


@dataclass(frozen=True, eq=False)
class Narrow:
    """A constant in fewer bytes: ``stored`` as uint16 (bits of float16), int8, or uint8.

    uint8: pairs of 4-bit integers, the second in the upper half of the byte. ``scales``: the
    factors of 8-bit values, along ``axis`` (-1: one factor for all).
    """

    stored: npt.NDArray[Any]
    scales: Floats | None = None
    axis: int = -1

    @property
    def form(self) -> tuple[str, int]:
        """The parameters by which a kernel widens it."""
        return str(self.stored.dtype), self.axis

    @property
    def arrays(self) -> list[npt.NDArray[Any]]:
        """The stored arrays."""
        return [self.stored] if self.scales is None else [self.stored, self.scales]


def narrow(array: Array) -> Narrow | None:
    """Return a float32 or int8 constant in fewer bytes, None if none of the forms applies.

    The result represents exactly the values of ``array``.
    """
    if array.dtype == np.int8:
        small = array.size >= LEAST_ELEMENTS and array.min() >= -8 and array.max() <= 7
        return Narrow(_nibbles(array)) if small else None
    if array.size < LEAST_ELEMENTS or not np.isfinite(array).all():
        return None
    for axis in (-1, *range(array.ndim)):
        found = _in_steps(array, axis)
        if found is not None:
            return found
    with np.errstate(over="ignore"):
        halves = array.astype(np.float16)
    same = np.array_equal(halves.astype(np.float32).view(np.uint32), array.view(np.uint32))
    return Narrow(halves.view(np.uint16)) if same else None


def _nibbles(array: Array) -> npt.NDArray[np.uint8]:
    """Return 4-bit integers, two per byte; the last one of an odd number has its own byte."""
    bits = array.reshape(-1).astype(np.uint8) & 15
    pairs = np.append(bits, np.zeros(bits.size % 2, np.uint8)).reshape(-1, 2)
    return np.asarray(pairs[:, 0] | pairs[:, 1] << 4, np.uint8)


def _in_steps(array: Floats, axis: int) -> Narrow | None:
    """Return ``array`` as 8-bit integers times a scale for each index of ``axis``, or None."""
    lines = array.reshape(1, -1) if axis < 0 else np.moveaxis(array, axis, 0)
    lines = lines.reshape(len(lines), -1)
    if lines.size < LEAST_ELEMENTS * (axis >= 0) + 8 * len(lines):
        return None  # the scales need as many bytes as they save
    found = list(takewhile(bool, map(_scale, lines)))
    if len(found) < len(lines):
        return None
    scales = spread = np.array(found, np.float32)
    if axis >= 0:
        spread = scales.reshape([-1 if a == axis else 1 for a in range(array.ndim)])
    stored = np.rint(array / spread)
    if np.abs(stored).max() > _LARGEST:
        return None
    made = stored.astype(np.int8)
    widened = made.astype(np.float32) * spread
    if not np.array_equal(widened.view(np.uint32), array.view(np.uint32)):
        return None
    return Narrow(made, scales, axis)


def _scale(line: Floats) -> np.float32:
    """Return the scale of which all values are multiples by at most 127; 0 if there is none."""
    largest = np.abs(line).max()
    if largest == 0:
        return np.float32(1)
    sizes = np.unique(np.abs(line))
    if len(sizes) > _LARGEST + 1:
        return np.float32(0)
    for count in range(_LARGEST, 0, -1):
        scale = np.float32(largest / np.float32(count))
        for _ in range(_NEAR):
            scale = np.nextafter(scale, np.float32(0))
        for _ in range(2 * _NEAR + 1):
            if scale > 0 and np.array_equal(np.rint(sizes / scale) * scale, sizes):
                return scale
            scale = np.nextafter(scale, np.float32(np.inf))
    return np.float32(0)


def narrow_constants(
    calls: Mapping[int, tuple[str, Sequence[Array | None]]],
) -> dict[int, dict[int, Narrow]]:
    """Return the constants that can be stored in fewer bytes, by call and position.

    ``calls``: the kernel and the constants (None for other arguments) of each call. A parameter is
    narrow if it has the same form in every call of the kernel.
    """
    known: dict[bytes, Narrow | None] = {}
    found = {call: _of_call(arrays, known) for call, (_, arrays) in calls.items()}
    forms: dict[tuple[str, int], set[tuple[str, int] | None]] = {}
    for call, (kernel, arrays) in calls.items():
        for position in range(len(arrays)):
            held = found[call].get(position)
            forms.setdefault((kernel, position), set()).add(None if held is None else held.form)
    return {
        call: {p: n for p, n in held.items() if len(forms[calls[call][0], p]) == 1}
        for call, held in found.items()
    }


def _of_call(
    arrays: Sequence[Array | None], known: dict[bytes, Narrow | None]
) -> dict[int, Narrow]:
    found = {}
    for position, array in enumerate(arrays):
        if array is None or array.dtype not in (np.float32, np.int8):
            continue
        key = sha256(repr((array.shape, str(array.dtype))).encode() + array.tobytes()).digest()
        if key not in known:
            known[key] = narrow(array)
        held = known[key]
        if held is not None:
            found[position] = held
    return found
