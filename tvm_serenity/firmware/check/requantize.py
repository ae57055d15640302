"""Compares the compiled requantisation of the library with exact integers.

A network has few different sums. Here each form of the library gets the sums at which a wrong
rounding, sign or limit shows (``quantize.exact``), for the multiplier, shift, zero point and limits
of every channel.
"""

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import WrongResultError
from tvm_serenity.firmware.emit.forms import REQUANTISE, SHORT
from tvm_serenity.firmware.kernels.pack import LEAST_SHIFT
from tvm_serenity.firmware.program import Array
from tvm_serenity.quantize.exact import (
    ONCE,
    SMALL,
    TWICE,
    Channel,
    Ints,
    stored_values,
    telling_sums,
)

_FORMS = {TWICE: (0, 1), ONCE: (2, 3)}
"""The numbers of a rounding's two functions in the library: any sums, small sums."""
_FULL = {(-128, 127): 1, (0, 255): 2}
"""The library's numbers for clamping to the limits of a type."""
_WORD = (1 << 31) - 1


@dataclass(frozen=True)
class _Case:
    """The sums of a channel for which a form is defined, and the expected results."""

    channel: Channel
    sums: Ints
    expected: Ints

    def part(self, chosen: npt.NDArray[np.bool_]) -> "_Case":
        return _Case(self.channel, self.sums[chosen], self.expected[chosen])

    def array(self, value: int, dtype: type) -> npt.NDArray[np.int32]:
        return np.full(self.sums.shape, value, dtype)


def compare_forms(
    library: ctypes.CDLL, used: frozenset[str], channels: Iterable[tuple[str, Channel]]
) -> int:
    """Return the number of sums compared; raise :class:`WrongResultError` at a difference.

    ``library`` was compiled with ``forms.c``; ``used`` names the files of the kernel library that
    it contains; ``channels`` are pairs of an operator's name and a channel.
    """
    count, seen = 0, set[Channel]()
    for operator, channel in channels:
        if channel in seen or REQUANTISE not in used or channel.rounding not in _FORMS:
            continue
        seen.add(channel)
        for name, case, made in _made(library, used, _case(channel)):
            wrong = np.flatnonzero(made != case.expected)
            if wrong.size:
                raise WrongResultError(_said(operator, name, case, made, int(wrong[0])))
            count += made.size
    return count


def _is_byte(channel: Channel) -> bool:
    """Return whether results are stored in 8 bits."""
    return any(low <= channel.low and channel.high <= high for low, high in _FULL)


def _case(channel: Channel) -> _Case:
    sums = telling_sums(channel)
    expected, defined = stored_values(channel, sums)
    return _Case(channel, sums[defined], expected[defined])


def _made(
    library: ctypes.CDLL, used: frozenset[str], case: _Case
) -> Iterator[tuple[str, _Case, Ints]]:
    """Yield the results of each form for the sums that it supports."""
    channel, shift = case.channel, case.channel.shift
    yield "requantised", case, _general(library, case, _FORMS[channel.rounding][0])
    if not LEAST_SHIFT <= shift < 0:
        return
    small = case.part(np.abs(case.sums) < SMALL)
    yield "requantised, small", small, _general(library, small, _FORMS[channel.rounding][1])
    if channel.rounding == TWICE and _is_byte(channel):
        yield "store_four", small, _by_fours(library, small)
    added = (2 * channel.zero_point + 1) << (-shift - 1)
    whole = _FULL.get((channel.low, channel.high))
    if SHORT in used and whole is not None:
        short = small.part(abs(added) + np.abs(small.sums) + 2 < _WORD)
        yield "five instructions", short, _shortly(library, short, whole)


def _general(library: ctypes.CDLL, case: _Case, form: int) -> Ints:
    c = case.channel
    to = np.array([c.zero_point, c.low, c.high, form], np.int32)
    out = np.zeros(case.sums.shape, np.int32)
    sums, count = case.sums.astype(np.int32), ctypes.c_int32(case.sums.size)
    given = (to, sums, case.array(c.value, np.int32), case.array(c.shift, np.int32), out)
    library.serenity_requantised(*(_at(a) for a in given), count)
    return out.astype(np.int64)


def _by_fours(library: ctypes.CDLL, case: _Case) -> Ints:
    c, count = case.channel, case.sums.size
    full = -(-count // 4) * 4
    to = np.array([c.zero_point, c.low, c.high, _FULL.get((c.low, c.high), 0)], np.int32)
    sums, out = np.zeros(full, np.int32), np.zeros(full, np.uint8)
    sums[:count] = case.sums
    given = (to, sums, np.full(full, c.value, np.int32), np.full(full, c.shift, np.int8), out)
    library.serenity_stored(*(_at(a) for a in given), ctypes.c_int32(full))
    return (out.view(np.int8) if c.low < 0 else out)[:count].astype(np.int64)


def _shortly(library: ctypes.CDLL, case: _Case, whole: int) -> Ints:
    c = case.channel
    form = 2 * (c.rounding == ONCE) + whole - 1
    numbers = np.tile(
        np.array([c.value, (2 * c.zero_point + 1) * 256 - c.shift - 1], np.int32), case.sums.size
    )
    out, sums = np.zeros(case.sums.shape, np.int32), case.sums.astype(np.int32)
    given = [_at(a) for a in (sums, numbers, out)]
    library.serenity_short(ctypes.c_int32(form), *given, ctypes.c_int32(case.sums.size))
    return out.astype(np.int64)


def _at(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _said(operator: str, form: str, case: _Case, made: Sequence[int] | Ints, at: int) -> str:
    c = case.channel
    return (
        f"operator {operator!r}: the kernel library's requantisation ({form}) is wrong: a sum of "
        f"{case.sums[at]} times {c.value} * 2^{c.shift - 31} with zero point {c.zero_point} is "
        f"{case.expected[at]} within {c.low}..{c.high}, the compiled code gives {made[at]}"
    )
