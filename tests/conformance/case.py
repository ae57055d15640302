"""One made-up model against the runtime it is written for.

    verdict = check(Case("MEAN", tflite(...), "int8, axes (1, 2)"))

The model goes the way of ``serenity compile``: imported, turned into integer kernels, compiled
with the pipeline, run on the Relax VM; the reference runtime runs it in a process of its own.
"""

import atexit
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from tests.conformance.writer import Array
from tests.quantize.running import REFERENCE, Machine
from tvm_serenity.errors import SerenityError, WrongResultError
from tvm_serenity.frontends.relax import to_relax
from tvm_serenity.relax.quantize import quantized_module
from tvm_serenity.validation.references import Fill, ReferenceRuntimeError, runtime_for

EQUAL, REFUSED, DIFFERENT, NO_REFERENCE = "equal", "refused", "different", "no reference runtime"
FILLS: tuple[Fill, ...] = (0, 1, 2, "min", "max", "zero")
TOLERANCE = 1e-5
"""Of floats: of the largest magnitude of the output, and as much again of each value."""
_FOLDER = tempfile.TemporaryDirectory(prefix="conformance")
atexit.register(_FOLDER.cleanup)


@dataclass(frozen=True)
class Case:
    """A made-up model.

    ``feeds``: inputs it is run on, one array an input of the file; by default they are drawn
    (``FILLS``). ``tolerance`` is that of floats, ``absolute`` what else they may be apart;
    integers and booleans are compared bit by bit.
    """

    kind: str
    data: bytes
    note: str = ""
    feeds: tuple[tuple[Array, ...], ...] = ()
    tolerance: float = TOLERANCE
    absolute: float = 0.0
    suffix: ClassVar[str] = ".tflite"

    def __repr__(self) -> str:
        return f"Case({self.kind}: {self.note}; {len(self.data)} bytes)"


@dataclass(frozen=True)
class Verdict:
    """``equal``, ``refused`` (by us), ``different`` or ``no reference runtime``, and the reason.

    A wrong result that is found while the model is read is a difference, and so is an exception of
    ours that is no :class:`SerenityError`.
    """

    status: str
    reason: str = ""


def check(case: Case) -> Verdict:
    """Return what became of a case; never raises for what the model makes of either side."""
    asked = _asked(case)
    try:
        machine = _compiled(case.data)
    except WrongResultError as error:  # a table, compared where it is made
        return Verdict(DIFFERENT, _line(error))
    except SerenityError as error:
        return Verdict(NO_REFERENCE, asked) if isinstance(asked, str) else _refusal(error)
    except Exception as error:  # what must not reach a user
        return Verdict(DIFFERENT, f"{type(error).__name__}: {_line(error)}")
    if isinstance(asked, str):
        return Verdict(NO_REFERENCE, asked)
    for index, (fill, inputs, wanted) in enumerate(asked):
        try:
            later = index and machine.first
            found = machine.step(inputs) if later else machine.run(inputs)
        except Exception as error:
            return Verdict(DIFFERENT, f"{type(error).__name__} when run: {_line(error)}")
        wrong = first_difference(found, wanted, case.tolerance, case.absolute)
        if wrong:
            return Verdict(DIFFERENT, f"inputs {fill}: {wrong}")
    return Verdict(EQUAL)


def first_difference(
    found: Sequence[Array], wanted: Sequence[Array], tolerance: float, absolute: float = 0.0
) -> str:
    """Return where results differ first, "" where they do not."""
    if len(found) != len(wanted):
        return f"{len(found)} results, not {len(wanted)}"
    for index, (mine, theirs) in enumerate(zip(found, wanted, strict=True)):
        if mine.dtype != theirs.dtype or mine.shape != theirs.shape:
            kinds = f"{mine.dtype}{mine.shape}, not {theirs.dtype}{theirs.shape}"
            return f"result {index} is {kinds}"
        wrong = ~_same(mine, theirs, tolerance, absolute)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            text = f"{mine[at]} instead of {theirs[at]}"
            return f"result {index} at {at}: {text} ({int(wrong.sum())} of {wrong.size})"
    return ""


def _same(mine: Array, theirs: Array, tolerance: float, absolute: float) -> Array:
    if mine.dtype.kind != "f":
        return np.asarray(mine == theirs)
    a, b = mine.astype(np.float64), theirs.astype(np.float64)
    finite = np.abs(b[np.isfinite(b)])
    around = max(tolerance * float(finite.max(initial=0)), absolute)
    return np.asarray(np.isclose(a, b, rtol=tolerance, atol=around, equal_nan=True))


def _asked(case: Case) -> list[tuple[str, Sequence[Array], Sequence[Array]]] | str:
    """Inputs and what the reference runtime makes of them; or why there is no reference runtime.

    Runs after the first keep the states that the one before left.
    """
    try:
        REFERENCE.open(runtime_for("model.tflite", case.data), case.data)
        feeds: list[tuple[str, Sequence[Array]]] = [
            (f"of feed {i}", feed) for i, feed in enumerate(case.feeds)
        ] or [(repr(fill), REFERENCE.inputs(fill)) for fill in FILLS]
        ran: list[tuple[str, Sequence[Array], Sequence[Array]]] = []
        for index, (name, feed) in enumerate(feeds):
            answer = REFERENCE.step(feed) if index else REFERENCE.run(feed)
            ran.append((name, feed, answer.outputs))
        return ran
    except ReferenceRuntimeError as error:
        return str(error)


def _compiled(data: bytes) -> Machine:
    path = Path(_FOLDER.name) / "model.tflite"
    path.write_bytes(data)
    return Machine(quantized_module(to_relax(path)))


def _refusal(error: SerenityError) -> Verdict:
    return Verdict(REFUSED, str(error).removeprefix(f"{_FOLDER.name}/model.tflite: "))


def _line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no message")
