"""Record the outputs of the model's reference runtime beside TVM's tensors in ``reference.npz``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tvm_serenity.errors import MissingPartError
from tvm_serenity.firmware.program import Array
from tvm_serenity.validation.disagreement import disagreement
from tvm_serenity.validation.reference_spec import ReferenceSpec
from tvm_serenity.validation.references import (
    Answer,
    ReferenceRuntime,
    ReferenceRuntimeError,
    consulted,
)
from tvm_serenity.validation.report import Tolerance
from tvm_serenity.validation.rules import has_runtime, rule_for
from tvm_serenity.validation.tolerances import FLOAT

OUTPUT, STEPS, NOTE, ALLOWED = "litert", "litert_steps", "litert_note", "litert_allowed"
"""Keys: the reference runtime's outputs, confirmed steps, the reason without, the tolerance."""
SAID = "litert_said"
"""Key: the operator that TVM computes wrongly, and what a second reference says about it."""


@dataclass(frozen=True)
class Recorded:
    """Outputs of a run that starts with initial states, and all runtime tensors by index.

    ``spec`` is the runtime that answered, ``inputs`` its inputs.
    """

    outputs: list[Array]
    tensors: Mapping[int, Array]
    note: str = ""
    spec: ReferenceSpec | None = None
    inputs: Sequence[Array] = ()

    def shaped(self, ours: Sequence[Array]) -> list[Array]:
        """Return the outputs in the shapes of ``ours``."""
        pairs = zip(self.outputs, ours, strict=False)
        return [w.reshape(o.shape) if w.size == o.size else w for w, o in pairs]


def recorded(
    model: str | None, inputs: Sequence[Array], process: ReferenceRuntime | None = None
) -> Recorded:
    """Return what the runtime of a ``.tflite`` or ``.onnx`` file computes on ``inputs``.

    The first inputs are the file's, the rest states, which the runtime has itself. Where there is
    no answer, ``note`` says why: no runtime, not installed, refused, died. ``process``: the one to
    ask, by default a new one.
    """
    return recorded_runs(model, [inputs], process=process)[0]


def recorded_runs(
    model: str | None,
    runs: Sequence[Sequence[Array]],
    follow: bool = False,
    *,
    keep: bool = True,
    process: ReferenceRuntime | None = None,
) -> list[Recorded]:
    """Return the outputs of each of several independent runs.

    ``follow``: each run continues with the states of the previous one. ``keep``: also return
    tensors that are not outputs.
    """
    path = None if model is None else Path(model)
    if path is None or not has_runtime(path):
        return [Recorded([], {}, "the model has no runtime of its own")] * len(runs)

    def ask(reference: ReferenceRuntime) -> list[tuple[list[Array], Answer]]:
        found: list[tuple[list[Array], Answer]] = []
        for inputs in runs:
            pairs = list(zip(inputs, reference.entries, strict=False))
            if len(pairs) != len(reference.entries):
                raise ReferenceRuntimeError(
                    f"the file has {len(reference.entries)} inputs, but {len(inputs)} were given"
                )
            own = [a if -1 in e.shape else a.reshape(e.shape).astype(e.dtype) for a, e in pairs]
            found.append((own, (reference.step if follow and found else reference.run)(own)))
        return found

    try:
        rule = rule_for(path)
        runtime, found = consulted(rule.runtime, path, ask, keep=keep, process=process)
    except (ReferenceRuntimeError, MissingPartError) as error:
        return [Recorded([], {}, str(error))] * len(runs)
    spec = ReferenceSpec(runtime, path, rule.tolerance, follow=False)
    return [Recorded(list(a.outputs), a.tensors, "", spec, own) for own, a in found]


def as_reference(
    found: Recorded, outputs: Sequence[Array], process: ReferenceRuntime | None = None
) -> dict[str, Array]:
    """Return the arrays to record of the reference runtime: outputs, tolerance and note.

    Outputs are reshaped to the shapes of ``outputs``, which are TVM's. If TVM's differ without
    being wrong, the recorded tolerance includes the difference. ``process`` is asked whether they
    are, by default a new one.
    """
    if found.spec is None:
        return {NOTE: np.array(found.note)}
    shaped = found.shaped(outputs)
    answers, results = [(found.inputs, shaped)], [outputs[: len(shaped)]]
    verdict = disagreement(found.spec, answers, results, process)
    allowed = verdict.tolerance
    numbers = np.array([allowed.relative, allowed.absolute, allowed.steps], np.float64)
    said = {SAID: np.array(verdict.said)} if verdict.said else {}
    return {**{f"{OUTPUT}{i}": array for i, array in enumerate(shaped)}, ALLOWED: numbers, **said}


def tolerance_in(reference: Mapping[str, Any]) -> Tolerance:
    """Return the tolerance that is recorded in a reference."""
    if ALLOWED not in reference:
        return FLOAT
    relative, absolute, steps = (float(x) for x in reference[ALLOWED])
    return Tolerance(relative, absolute=absolute, steps=int(steps))


def confirmed_steps(found: Recorded, steps: Sequence[Array]) -> Array:
    """Return the steps whose integer tensor equals a tensor of the reference runtime.

    Kernels are named after Relax operators, not after the file's, so tensors correspond if type,
    size and values are equal, each runtime tensor once; or if ours has fewer channels, each of
    which equals, in order, a channel of the runtime's.
    """
    left: dict[tuple[str, int], list[bytes]] = {}
    for index in sorted(found.tensors):
        array = found.tensors[index]
        left.setdefault((str(array.dtype), array.size), []).append(array.tobytes())
    confirmed = []
    for number, step in enumerate(steps):
        candidates = left.get((str(step.dtype), step.size), [])
        if step.dtype.kind in "iu" and step.tobytes() in candidates:
            candidates.remove(step.tobytes())
            confirmed.append(number)
        elif any(_among(step, array) for array in found.tensors.values()):
            confirmed.append(number)
    return np.array(confirmed, np.int64)


def _among(ours: Array, theirs: Array) -> bool:
    """Return whether an integer tensor equals another one without some of its channels."""
    if ours.dtype.kind not in "iu" or ours.dtype != theirs.dtype or 0 in (ours.ndim, theirs.ndim):
        return False
    few, many = ours.shape[-1], theirs.shape[-1]
    if few >= many or ours.size * many != theirs.size * few or not few:
        return False
    left = iter(np.ascontiguousarray(theirs.reshape(-1, many).T))
    return all(
        any(np.array_equal(channel, other) for other in left)
        for channel in np.ascontiguousarray(ours.reshape(-1, few).T)
    )


def note_of(reference: Mapping[str, Any]) -> str:
    """Return why a reference has no outputs of a reference runtime; "" if it has them."""
    return str(np.asarray(reference[NOTE]).reshape(-1)[0]) if NOTE in reference else ""
