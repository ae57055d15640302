"""A second reference that decides if results differ from a runtime's: runtimes can be wrong.

The second reference shares no kernel with the first. Floats are compared with float64: our results
are right if their error is within the runtime's tolerance, or smaller than the runtime's own error.
An element that is NaN in float64 (a softmax over positions that are all masked) has no right value
where the runtime has a number, because it stored the NaN as an integer on the way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tvm_serenity.errors import MissingPartError, SerenityError
from tvm_serenity.frontends import format_at
from tvm_serenity.validation.inputs import Array
from tvm_serenity.validation.reference_spec import ReferenceSpec
from tvm_serenity.validation.references import ReferenceRuntime, ReferenceRuntimeError
from tvm_serenity.validation.report import Difference, Tolerance

SECOND = {"onnxruntime": "exact", "qlinear": "exact", "torch": "double"}
SECOND |= {"litert": "tflm", "tflm": "fast"}
"""The reference that is asked where results differ from those of a runtime."""
NAMES = {
    "exact": "onnx's reference evaluator in float64",
    "double": "PyTorch in float64",
    "tflm": "TFLM",
    "fast": "LiteRT with its fast kernels",
}
ROUNDS_ONCE = {"fast": 1.0}
"""Allowed steps of integers from a second reference that rounds once where others round twice."""
ROUNDED = 0.02
"""A runtime further from float64 than this share of the largest number is wrong, not rounding."""


@dataclass(frozen=True)
class Opinion:
    """The outputs of a second reference for each run, or the reason why it has none.

    ``steps``: the error that its own integers may have.
    """

    reference: str
    outputs: tuple[tuple[Array, ...], ...]
    reason: str = ""
    steps: float = 0.0

    def of(self, run: int, difference: Difference) -> str:
        """Return in words its value of the element that differs in a run."""
        if self.reason:
            return f"no second reference ({self.reason})"
        array = self.outputs[run][difference.output]
        if difference.index and np.ndim(array) == len(difference.index):
            return f"{self.reference} says {float(array[difference.index]):g}"
        return f"{self.reference} has shape {tuple(np.shape(array))}, type {array.dtype}"


def second_opinion(
    spec: ReferenceSpec, runs: Sequence[Sequence[Array]], process: ReferenceRuntime
) -> Opinion | None:
    """Return the outputs of the runtime's second reference for the inputs of each run.

    Return None if the runtime has no second reference.
    """
    other = SECOND.get(spec.runtime)
    if other is None:
        return None
    found = []
    try:
        process.open(other, spec.model)
        for number, inputs in enumerate(runs):
            ask = process.step if number and spec.follow else process.run
            found.append(ask(list(inputs)).outputs)
    except (ReferenceRuntimeError, MissingPartError) as error:
        return Opinion(NAMES[other], (), str(error))
    return Opinion(NAMES[other], tuple(found), steps=ROUNDS_ONCE.get(other, 0.0))


def excuses(
    second: Sequence[Array],
    theirs: Sequence[Array],
    ours: Sequence[Array],
    allowed: Tolerance,
    steps: float = 0.0,
) -> bool:
    """Return whether a second reference confirms ``ours`` against a runtime's results.

    ``steps``: the error that integers of the second reference may have.
    """
    return all(
        _excuses(s.reshape(o.shape), t, o, allowed, steps) if s.size == o.size == t.size else False
        for s, t, o in zip(second, theirs, ours, strict=False)
    )


def _excuses(second: Array, theirs: Array, ours: Array, allowed: Tolerance, steps: float) -> bool:
    if ours.dtype.kind not in "fiu":
        return bool(np.array_equal(second, ours))
    if ours.dtype.kind != "f" and second.dtype.kind != ours.dtype.kind:
        return False
    theirs = theirs.reshape(ours.shape)
    defined = (second == second) | (theirs != theirs)
    second, theirs, ours = second[defined], theirs[defined], ours[defined]
    own, rival = error(second, ours), error(second, theirs)
    if own <= allowed.allowed(second):
        return True
    if ours.dtype.kind != "f":
        return own <= steps < rival
    finite = np.abs(second[np.isfinite(second)].astype(np.float64))
    return own <= rival <= ROUNDED * float(finite.max(initial=0.0))


def error(exact: Array, found: Array) -> float:
    """Return the largest error of ``found``; infinite unless NaN and infinity match ``exact``."""
    wide, got = exact.astype(np.float64), found.astype(np.float64)
    with np.errstate(invalid="ignore"):
        apart = np.where((wide == got) | ((wide != wide) & (got != got)), 0.0, np.abs(wide - got))
    return float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0))


def maker(model: Path | bytes, output: int) -> str:
    """Return in words the operator that computes an output of a model; "" if it is unknown.

    ``model``: a file, or the bytes of an exported program.
    """
    path = model if isinstance(model, Path) else Path("program.pt2")
    try:
        data = model.read_bytes() if isinstance(model, Path) else model
        form = format_at(path)
        graph = None if form is None else form.read(path, data, {}).graph
    except (SerenityError, OSError):
        return ""
    if graph is None:
        return ""
    if output >= len(graph.outputs):
        return ""
    tensor = graph.outputs[output]
    made = next((op for op in graph.ops if tensor in op.outputs), None)
    return "" if made is None else f"operator {made.kind} {made.name!r}"
