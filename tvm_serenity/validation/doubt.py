"""How far a runtime is from itself: what its own rounding makes of a network.

onnxruntime runs a quantised network in two ways: with integer operators, and node by node in
floats. Both are right, and normalisations and attention carry what they differ by to the end. A
float network that cancels large numbers (the normalisation of a row that hardly varies) multiplies
the rounding of its inputs: any order of sums gives another result, and all are right.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from tvm_serenity.validation.inputs import Array
from tvm_serenity.validation.references import ReferenceRuntime, ReferenceRuntimeError
from tvm_serenity.validation.report import Tolerance
from tvm_serenity.validation.rules import multiplies_bytes, stores_steps
from tvm_serenity.validation.tolerances import HALF

Run = tuple[Sequence[Array], Sequence[Array]]
"""Inputs as the runtime has them, and its outputs."""
QLINEAR, PLAIN, EXACT = "qlinear", "onnxruntime", "exact"
TIMES = 2.0
"""How often further a third way may be from one of both than the other is."""
NUDGES = (2.0**-20, 2.0**-20, 2.0**-22, 2.0**-22)
"""Of an input, in either direction: the largest is what a sum of a thousand float32 terms loses."""
TIMES_NUDGED = 4.0
"""How often further than on nudged inputs results may be."""
JUMPS = 0.5
"""Results that a fourth of a nudge moves by more than this share of what a nudge does are steps."""


def widened(
    tolerance: Tolerance, runtime: str, model: Path | bytes, runs: Sequence[Run]
) -> Tolerance:
    """Return ``tolerance``, or more where ``runtime`` itself is further apart on the same inputs.

    Runtimes that have one way keep theirs, and so do those whose other way has no answer.
    onnxruntime without its optimisations lets sums of bytes' products saturate: where a network has
    some, onnx's reference evaluator is the other way.
    """
    if runtime != QLINEAR:
        return tolerance
    other = EXACT if multiplies_bytes(model) else PLAIN
    floats, steps = 0.0, 0.0
    with suppress(ReferenceRuntimeError), ReferenceRuntime() as reference:
        reference.open(other, model)
        for inputs, outputs in runs:
            for mine, theirs in zip(outputs, reference.run(list(inputs)).outputs, strict=True):
                apart = _largest(mine, theirs)
                if mine.dtype.kind in "iu":
                    steps = max(steps, apart)
                else:
                    floats = max(floats, apart)
    return replace(
        tolerance,
        absolute=max(tolerance.absolute, TIMES * floats),
        steps=max(tolerance.steps, int(TIMES * steps)),
    )


def conditioned(
    tolerance: Tolerance, runtime: str, model: Path | bytes, runs: Sequence[Run]
) -> Tolerance:
    """Return ``tolerance``, or more where rounding the inputs of a float network shows that much.

    The runtime computes ``runs``, each from the states of the one before, again on inputs that are
    a little off; the last one counts. Networks that round to steps keep their tolerance, and so do
    those whose results jump: that is no error of rounding.
    """
    inputs, outputs = runs[-1]
    rounds = stores_steps(model, runtime) or tolerance.relative == HALF.relative
    if rounds or not any(a.dtype.kind == "f" for a in inputs):
        return tolerance
    moved, rng = dict.fromkeys(NUDGES, 0.0), np.random.default_rng(0)
    with suppress(ReferenceRuntimeError), ReferenceRuntime() as reference:
        reference.open(runtime, model)
        for nudge in NUDGES:
            for number, (given, _) in enumerate(runs):
                ask = reference.step if number else reference.run
                found = ask([_nudged(a, nudge, rng) for a in given]).outputs
            pairs = zip(outputs, found, strict=True)
            apart = [_largest(a, b) for a, b in pairs if a.dtype.kind == "f"]
            moved[nudge] = max([moved[nudge], *apart])
    most, least = (moved[f(NUDGES)] for f in (max, min)) if NUDGES else (0.0, 0.0)
    floats = 0.0 if least > JUMPS * most else most
    return replace(tolerance, absolute=max(tolerance.absolute, TIMES_NUDGED * floats))


def _nudged(array: Array, nudge: float, rng: np.random.Generator) -> Array:
    """An input with each of its floats a little off."""
    if array.dtype.kind != "f":
        return array
    return np.asarray(array * (1 + nudge * rng.choice([-1.0, 1.0], array.shape)), array.dtype)


def _largest(one: Array, other: Array) -> float:
    """The largest difference of elements that are numbers in both."""
    if one.dtype.kind not in "fiu" or one.size != other.size:
        return 0.0
    apart = np.abs(one.reshape(-1).astype(np.float64) - other.reshape(-1).astype(np.float64))
    return float(apart[np.isfinite(apart)].max(initial=0.0))
