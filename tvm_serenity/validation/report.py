"""Comparison of results: the first wrong element, a one-line report, and a reproducer file."""

import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from tvm_serenity.errors import InputError, WrongResultError
from tvm_serenity.system.files import write_bytes
from tvm_serenity.system.isolated import Death
from tvm_serenity.validation.inputs import Array

PROGRAM, INPUT = "case", "input"
"""Array names in a reproducer: the case as JSON text, and each input by its position."""


@dataclass(frozen=True)
class Tolerance:
    """The allowed difference between two results.

    Floats: the larger of ``absolute`` and ``relative`` times the result's largest magnitude.
    Integers: ``steps``; with ``integers``, the rule of floats. Booleans must be identical. Zeros of
    either sign are equal, and so are NaNs.
    """

    relative: float = 0.0
    integers: bool = False
    absolute: float = 0.0
    steps: int = 0

    def allowed(self, expected: Array) -> float:
        """Return the largest accepted difference from ``expected``."""
        kind = expected.dtype.kind
        if kind in "iu" and not self.integers:
            return float(self.steps)
        if kind not in "fiu":
            return 0.0
        finite = np.abs(expected[np.isfinite(expected)].astype(np.float64))
        return max(self.relative * float(finite.max(initial=0.0)), self.absolute)

    def text(self) -> str:
        """Return the tolerance in words."""
        said = [f"{self.relative:g} of a result's largest number"] if self.relative else []
        said += [f"{self.absolute:g}"] if self.absolute else []
        said += [f"{self.steps} steps of integers"] if self.steps else []
        return " or ".join(said) or "nothing"


EXACT = Tolerance()
TVMS = "TVM's own kernel"
"""The default name of the reference in a report."""


@dataclass(frozen=True)
class Difference:
    """The first wrong element of result ``output``, with the number of wrong elements."""

    output: int
    index: tuple[int, ...]
    expected: float
    got: float
    wrong: int
    elements: int
    largest: float

    def text(self) -> str:
        """Return the difference in words, for the end of a line."""
        place = f"[{', '.join(map(str, self.index))}]"
        which = f"result {self.output}" if self.output else "result"
        return (
            f"{which}{place} is {self.got:g}, expected {self.expected:g} "
            f"({self.wrong:,} of {self.elements:,} elements differ, by {self.largest:g} at most)"
        )


def first_difference(
    expected: Sequence[Array], got: Sequence[Array], tolerance: Tolerance = EXACT
) -> Difference | None:
    """Return the first difference of two lists of results; None if all are accepted.

    A result of another shape or type differs at its first element and in all elements.
    """
    if len(expected) != len(got):
        return Difference(min(len(expected), len(got)), (), math.nan, math.nan, 1, 1, math.inf)
    for output, (want, have) in enumerate(zip(expected, got, strict=True)):
        found = _of_arrays(output, np.asarray(want), np.asarray(have), tolerance)
        if found is not None:
            return found
    return None


def _of_arrays(output: int, want: Array, have: Array, tolerance: Tolerance) -> Difference | None:
    if want.shape != have.shape or want.dtype != have.dtype:
        return Difference(output, (), math.nan, math.nan, have.size, have.size, math.inf)
    if want.tobytes() == have.tobytes():
        return None
    limit = tolerance.allowed(want)
    with np.errstate(invalid="ignore", over="ignore"):
        equal = (want == have) | ((want != want) & (have != have))
        apart = np.abs(want.astype(np.float64) - have.astype(np.float64))
        wrong = ~(equal | (apart <= limit))
    if not wrong.any():
        return None
    apart = np.where(equal, 0.0, np.nan_to_num(apart, nan=np.inf))
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    return Difference(
        output,
        place,
        float(want[place]),
        float(have[place]),
        int(wrong.sum()),
        wrong.size,
        float(apart.max(initial=0.0)),
    )


@dataclass(frozen=True)
class Wrong:
    """A kernel whose result differs from its reference.

    ``operator``: the model's name of the operator; ``kernel``: the symbol; ``against``: the name of
    the reference.
    """

    operator: str
    kernel: str
    against: str
    difference: Difference | str

    def line(self, reproducer: Path | None = None) -> str:
        """Return the report in one line."""
        what = self.difference if isinstance(self.difference, str) else self.difference.text()
        shown = "" if reproducer is None else f"; shown again by {command(reproducer)}"
        return (
            f"operator {self.operator!r}, kernel {self.kernel!r}: wrong against "
            f"{self.against}: {what}{shown}"
        )


def command(reproducer: Path) -> str:
    """Return the command that replays a reproducer."""
    return f"serenity replay {reproducer}"


def fail(wrong: Wrong, reproducer: Path | None = None) -> NoReturn:
    """Raise :class:`WrongResultError` (exit status 1) for ``wrong``."""
    raise WrongResultError(wrong.line(reproducer))


def write_reproducer(path: Path, case: Mapping[str, Any], inputs: Sequence[Array]) -> Path:
    """Write a case and its inputs as ``.npz``; return its path, a free name beside ``path``.

    ``case`` is JSON; ``kind`` names the module that replays it (``tvm_serenity.commands.replay``).
    """
    path, number = path.with_suffix(".npz"), 0
    place = path
    while place.exists():
        number += 1
        place = path.with_stem(f"{path.stem}-{number}")
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {PROGRAM: np.array(json.dumps(case))}
    arrays |= {f"{INPUT}{i}": array for i, array in enumerate(inputs)}
    np.savez_compressed(buffer, **arrays)
    write_bytes(place, buffer.getvalue())
    return place


def read_reproducer(path: Path) -> tuple[dict[str, Any], list[Array]]:
    """Return the case and the inputs of a reproducer.

    Raises :class:`InputError` if the file is not a reproducer.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            case = json.loads(str(file[PROGRAM]))
            inputs = [file[f"{INPUT}{i}"] for i in range(len(file.files) - 1)]
    except (OSError, ValueError, KeyError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: not a reproducer ({reason})") from None
    return case, inputs


def concluded(case: Mapping[str, Any], results: Iterable[Difference | str | None]) -> str:
    """Return the line that reports a replayed kernel as right.

    ``results``: the error of each run, or None. Raises :class:`WrongResultError` at the first
    error; the death of the child process (``isolated``) is an error.
    """
    try:
        what = next((found for found in results if found is not None), None)
    except Death as death:
        what = str(death)
    if what is not None:
        wrong = Wrong(case["operator"], case["kernel"], case.get("against", TVMS), what)
        raise WrongResultError(wrong.line())
    return f"kernel {case['kernel']!r}: computes what {case.get('against', TVMS)} computes"
