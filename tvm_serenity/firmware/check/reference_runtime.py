"""What the model's own runtime computes, recorded beside TVM's tensors in ``reference.npz``."""

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
"""Keys: the reference runtime's outputs, the steps it confirms, why it has none, the tolerance."""
SAID = "litert_said"
"""Key: which operator makes what TVM has wrong, and what a second reference says of it."""


@dataclass(frozen=True)
class Recorded:
    """Outputs of one run from the first states, and all tensors the runtime keeps, by index.

    ``spec`` is the runtime that answered, ``inputs`` what it was given.
    """

    outputs: list[Array]
    tensors: Mapping[int, Array]
    note: str = ""
    spec: ReferenceSpec | None = None
    inputs: Sequence[Array] = ()

    def shaped(self, ours: Sequence[Array]) -> list[Array]:
        """Return the outputs under the shapes of ours."""
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
    """Return the same for each of several runs, which know nothing of each other.

    ``follow``: each goes on with the states that the one before has left. Without ``keep`` no
    tensors but the outputs are returned.
    """
    path = None if model is None else Path(model)
    if path is None or not has_runtime(path):
        return [Recorded([], {}, "the model has no runtime of its own")] * len(runs)

    def ask(reference: ReferenceRuntime) -> list[tuple[list[Array], Answer]]:
        found: list[tuple[list[Array], Answer]] = []
        for inputs in runs:
            pairs = list(zip(inputs, reference.entries, strict=False))
            if len(pairs) != len(reference.entries):
                raise ReferenceRuntimeError(f"the file has {len(reference.entries)} inputs")
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


def as_reference(found: Recorded, outputs: Sequence[Array]) -> dict[str, Array]:
    """Return the arrays to record of the reference runtime: outputs, tolerance and note.

    Outputs are reshaped to the shapes of ours.
    ``outputs`` are TVM's. Where these differ and are not wrong, what is built may be as far.
    """
    if found.spec is None:
        return {NOTE: np.array(found.note)}
    shaped = found.shaped(outputs)
    verdict = disagreement(found.spec, [(found.inputs, shaped)], [outputs[: len(shaped)]])
    allowed = verdict.tolerance
    numbers = np.array([allowed.relative, allowed.absolute, allowed.steps], np.float64)
    said = {SAID: np.array(verdict.said)} if verdict.said else {}
    return {**{f"{OUTPUT}{i}": array for i, array in enumerate(shaped)}, ALLOWED: numbers, **said}


def tolerance_in(reference: Mapping[str, Any]) -> Tolerance:
    """Return the tolerance that a reference was recorded with."""
    if ALLOWED not in reference:
        return FLOAT
    relative, absolute, steps = (float(x) for x in reference[ALLOWED])
    return Tolerance(relative, absolute=absolute, steps=int(steps))


def confirmed_steps(found: Recorded, steps: Sequence[Array]) -> Array:
    """Return the steps that make a tensor which the runtime made, too, of integers.

    Kernels are named after Relax operators, not after those of the file: tensors correspond where
    type, size and values are the same, each once; or where ours has fewer channels, each of which
    is, in order, one of the runtime's.
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
    """Whether a tensor of integers is another one without some of its channels, the last axis."""
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
    """Return why a reference has no outputs of a reference runtime, empty where it has them."""
    return str(reference[NOTE]) if NOTE in reference else ""
