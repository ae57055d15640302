"""Constants in fewer bytes that stand for the very same numbers.

Files hold weights as float16 or as 8-bit integers and scales, and importers widen them. A constant
of float32 whose every value a float16 is, or an 8-bit integer times a scale (one, or one for each
index of an axis), is stored so again; one of int8 whose every value has 4 bits is stored two to a
byte. The kernel widens what it loads (``widen``). Whether a constant is such is seen from its
values, wherever they come from, and proved on all of them.
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
"""Smaller constants stay as they are."""
HALVES, NIBBLES = "uint16", "uint8"
"""Types by which stored float16, and pairs of 4-bit integers, are known."""
_LARGEST = 127
_NEAR = 4
"""Steps of float32 around a quotient in which a scale is looked for."""


@dataclass(frozen=True, eq=False)
class Narrow:
    """A constant as it is stored: ``stored`` of uint16 (float16's bits), int8, or uint8.

    uint8: integers of 4 bits, two to a byte, the second above the first.
    ``scales``: what 8-bit values are multiplied by, along ``axis`` (-1: all by one).
    """

    stored: npt.NDArray[Any]
    scales: Floats | None = None
    axis: int = -1

    @property
    def form(self) -> tuple[str, int]:
        """What a kernel must know to widen it."""
        return str(self.stored.dtype), self.axis

    @property
    def arrays(self) -> list[npt.NDArray[Any]]:
        """What is stored."""
        return [self.stored] if self.scales is None else [self.stored, self.scales]


def narrow(array: Array) -> Narrow | None:
    """Return how a constant of float32 or int8 is stored in fewer bytes; None: it is the least.

    The result stands for exactly the values of ``array``.
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
    """Integers of 4 bits, two to a byte; one of an odd number stands alone."""
    bits = array.reshape(-1).astype(np.uint8) & 15
    pairs = np.append(bits, np.zeros(bits.size % 2, np.uint8)).reshape(-1, 2)
    return np.asarray(pairs[:, 0] | pairs[:, 1] << 4, np.uint8)


def _in_steps(array: Floats, axis: int) -> Narrow | None:
    """``array`` as integers of 8 bits times a scale each index of ``axis`` has."""
    lines = array.reshape(1, -1) if axis < 0 else np.moveaxis(array, axis, 0)
    lines = lines.reshape(len(lines), -1)
    if lines.size < LEAST_ELEMENTS * (axis >= 0) + 8 * len(lines):
        return None  # scales that take as much as they save
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
    """The scale whose multiples of up to 127 the values are; 0 where there is none."""
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
    """Return which constants fewer bytes can hold, by call and position.

    ``calls``: the kernel and the constants (None for other arguments) of each. A parameter is
    narrow where it is of one form in every call of a kernel.
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
