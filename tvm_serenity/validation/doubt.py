"""How far a runtime is from itself: what a deep network makes of a step that rounds another way.

onnxruntime runs a quantised network in two ways: with integer operators, and node by node in
floats. Both are right, and normalisations and attention carry what they differ by to the end.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tvm_serenity.referees import Referee
from tvm_serenity.validation.inputs import Array
from tvm_serenity.validation.report import Tolerance

QLINEAR, PLAIN = "qlinear", "onnxruntime"
TIMES = 2.0
"""How often further a third way may be from one of both than the other is."""


def widened(
    tolerance: Tolerance,
    runtime: str,
    model: Path | bytes,
    runs: Sequence[tuple[Sequence[Array], Sequence[Array]]],
) -> Tolerance:
    """Return ``tolerance``, or more where ``runtime`` itself is further apart on the same inputs.

    ``runs``: inputs as the runtime has them, and its outputs. Runtimes that have one way keep
    theirs. Raises :class:`RefereeError` where the other way has no answer.
    """
    if runtime != QLINEAR:
        return tolerance
    floats, steps = 0.0, 0.0
    with Referee() as referee:
        referee.open(PLAIN, model)
        for inputs, outputs in runs:
            for one, other in zip(outputs, referee.run(list(inputs)).outputs, strict=True):
                apart = _largest(one, other)
                if one.dtype.kind in "iu":
                    steps = max(steps, apart)
                else:
                    floats = max(floats, apart)
    return replace(
        tolerance,
        absolute=max(tolerance.absolute, TIMES * floats),
        steps=max(tolerance.steps, int(TIMES * steps)),
    )


def _largest(one: Array, other: Array) -> float:
    """The largest difference of elements that are numbers in both."""
    if one.dtype.kind not in "fiu" or one.shape != other.shape:
        return 0.0
    apart = np.abs(one.astype(np.float64) - other.astype(np.float64))
    return float(apart[np.isfinite(apart)].max(initial=0.0))
