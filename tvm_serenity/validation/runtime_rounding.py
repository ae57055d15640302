"""The rounding error of a reference runtime itself: results may differ from it by as much.

onnxruntime runs a quantised network in two modes: with integer operators, or node by node in
floats. Both are right, and normalisation and attention carry their difference to the outputs. A
float network that cancels large numbers (the normalisation of an almost constant row) amplifies the
rounding of its inputs: each order of summation gives another right result.
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
"""Inputs in the runtime's shapes, and its outputs."""
QLINEAR, PLAIN, EXACT = "qlinear", "onnxruntime", "exact"
TIMES = 2.0
"""Allowed error of our results, as a multiple of the difference between a runtime's two modes."""
NUDGES = (2.0**-20, 2.0**-20, 2.0**-22, 2.0**-22)
"""Relative input perturbations; the largest is the rounding error of 1,000 float32 terms."""
TIMES_NUDGED = 4.0
"""Allowed error of our results, as a multiple of the effect of perturbed inputs."""
JUMPS = 0.5
"""A result is discontinuous if a quarter of a perturbation moves it by more than this share."""


def widened(
    tolerance: Tolerance,
    runtime: str,
    model: Path | bytes,
    runs: Sequence[Run],
    process: ReferenceRuntime,
) -> Tolerance:
    """Return ``tolerance``, widened to the difference between the two modes of ``runtime``.

    Only onnxruntime with integer operators has a second mode; if that has no answer, the tolerance
    stays. Without its optimisations onnxruntime saturates sums of byte products: for networks with
    such sums, onnx's reference evaluator is the second mode.
    """
    if runtime != QLINEAR:
        return tolerance
    other = EXACT if multiplies_bytes(model) else PLAIN
    floats, steps = 0.0, 0.0
    with suppress(ReferenceRuntimeError):
        process.open(other, model)
        for inputs, outputs in runs:
            for mine, theirs in zip(outputs, process.run(list(inputs)).outputs, strict=True):
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
    tolerance: Tolerance,
    runtime: str,
    model: Path | bytes,
    runs: Sequence[Run],
    process: ReferenceRuntime,
) -> Tolerance:
    """Return ``tolerance``, widened to the effect of input rounding on a float network.

    The runtime computes ``runs`` again on perturbed inputs, each run from the states of the
    previous one; the last run counts. The tolerance stays for networks that round to quantisation
    steps, and for discontinuous results: a jump is no rounding error.
    """
    inputs, outputs = runs[-1]
    rounds = stores_steps(model, runtime) or tolerance.relative == HALF.relative
    if rounds or not any(a.dtype.kind == "f" for a in inputs):
        return tolerance
    moved, rng = dict.fromkeys(NUDGES, 0.0), np.random.default_rng(0)
    with suppress(ReferenceRuntimeError):
        process.open(runtime, model)
        for nudge in NUDGES:
            for number, (given, _) in enumerate(runs):
                ask = process.step if number else process.run
                found = ask([_nudged(a, nudge, rng) for a in given]).outputs
            pairs = zip(outputs, found, strict=True)
            apart = [_largest(a, b) for a, b in pairs if a.dtype.kind == "f"]
            moved[nudge] = max([moved[nudge], *apart])
    most, least = (moved[f(NUDGES)] for f in (max, min)) if NUDGES else (0.0, 0.0)
    floats = 0.0 if least > JUMPS * most else most
    return replace(tolerance, absolute=max(tolerance.absolute, TIMES_NUDGED * floats))


def _nudged(array: Array, nudge: float, rng: np.random.Generator) -> Array:
    """Return an input with each float perturbed by a relative ``nudge``."""
    if array.dtype.kind != "f":
        return array
    return np.asarray(array * (1 + nudge * rng.choice([-1.0, 1.0], array.shape)), array.dtype)


def _largest(one: Array, other: Array) -> float:
    """Return the largest difference over elements that are finite in both arrays."""
    if one.dtype.kind not in "fiu" or one.size != other.size:
        return 0.0
    apart = np.abs(one.reshape(-1).astype(np.float64) - other.reshape(-1).astype(np.float64))
    return float(apart[np.isfinite(apart)].max(initial=0.0))
