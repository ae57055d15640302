"""Store constants in fewer bytes without changing their values.

Model files hold weights as float16, or as 8-bit integers with scales, and importers widen them to
float32. A float32 constant is narrowed again if each of its values is a float16, or an 8-bit
integer times a scale (one scale, or one for each index of an axis). An int8 constant whose values
fit in 4 bits is stored with two values in a byte. The kernel widens what it loads (``widen``). The
decision depends on the values only and is verified for every element.
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
"""Constants with fewer elements are not narrowed."""
HALVES, NIBBLES = "uint16", "uint8"
"""Stored types that mark float16 values, and pairs of 4-bit integers."""
_LARGEST = 127
_NEAR = 4
"""Number of float32 neighbours of a quotient that are tried as a scale, on each side."""


@dataclass(frozen=True, eq=False)
class Narrow:
    """A narrowed constant; ``stored`` is uint16 (float16 bits), int8, or uint8.

    A uint8 array holds 4-bit integers, two in a byte, the first in the low half. ``scales`` are the
    factors of 8-bit values along ``axis`` (-1: one scale for all values).
    """

    stored: npt.NDArray[Any]
    scales: Floats | None = None
    axis: int = -1

    @property
    def form(self) -> tuple[str, int]:
        """The stored type and the axis of the scales, which tell a kernel how to widen it."""
        return str(self.stored.dtype), self.axis

    @property
    def arrays(self) -> list[npt.NDArray[Any]]:
        """The arrays that are stored: the values, and the scales if there are any."""
        return [self.stored] if self.scales is None else [self.stored, self.scales]


def narrow(array: Array) -> Narrow | None:
    """Return a float32 or int8 constant in fewer bytes, or None if it cannot be narrowed.

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
    """Pack 4-bit integers, two in a byte; an odd last one has zero as its neighbour."""
    bits = array.reshape(-1).astype(np.uint8) & 15
    pairs = np.append(bits, np.zeros(bits.size % 2, np.uint8)).reshape(-1, 2)
    return np.asarray(pairs[:, 0] | pairs[:, 1] << 4, np.uint8)


def _in_steps(array: Floats, axis: int) -> Narrow | None:
    """Return ``array`` as int8 times a scale per index of ``axis``; None if that is not exact."""
    lines = array.reshape(1, -1) if axis < 0 else np.moveaxis(array, axis, 0)
    lines = lines.reshape(len(lines), -1)
    if lines.size < LEAST_ELEMENTS * (axis >= 0) + 8 * len(lines):
        return None  # the scales take as many bytes as int8 saves
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
    """Return a scale of which each value is a multiple of up to 127; 0 if there is none."""
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
    """Return the constants that can be narrowed, by call and argument position.

    ``calls`` gives the kernel of each call and its constants (None for other arguments). A
    parameter is narrowed only if its constant has the same form in every call of the kernel.
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
