"""Further random inputs of a network, and their expected outputs.

``build`` runs a network on up to 90 inputs and records the outputs. ``verify`` draws the same
inputs from the seeds in ``metadata.json``, and runs the firmware in QEMU. 90 inputs find an error
that 5 % of all inputs show with a probability of 99 %.
"""

import os
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm_serenity.errors import CheckError, InputError
from tvm_serenity.firmware.board.execute import Execution, qemu_runs
from tvm_serenity.firmware.program import Array
from tvm_serenity.firmware.result import Project
from tvm_serenity.validation.inputs import Range
from tvm_serenity.validation.report import Tolerance, first_difference
from tvm_serenity.validation.seeded_inputs import drawn_inputs
from tvm_serenity.validation.tolerances import FLOAT

MOST_INPUTS, LEAST_INPUTS = 90, 4
"""The numbers of inputs that a network is compared on, at most and at least."""
QEMU_S = 60.0
"""Processor seconds of QEMU after which ``verify`` ends, without a number of inputs."""
OUTPUT, CHECKSUM = "more_output", "more_checksum"
"""Keys of a reference: the outputs for the additional inputs, and a checksum of these inputs."""
DRAWN = "drawn"
"""Key of ``metadata.json``: the ranges of integer inputs, by position."""


def recorded(runs: Sequence[tuple[Sequence[Array], Sequence[Array]]]) -> dict[str, Array]:
    """Return the arrays that a reference stores of further runs (inputs and outputs)."""
    if not runs:
        return {}
    outputs = zip(*(outputs for _, outputs in runs), strict=True)
    return {
        **{f"{OUTPUT}{i}": np.stack(arrays) for i, arrays in enumerate(outputs)},
        CHECKSUM: np.array(checksum([inputs for inputs, _ in runs]), np.int64),
    }


def checksum(runs: Sequence[Sequence[Array]]) -> int:
    """Return a checksum of inputs."""
    total = 0
    for inputs in runs:
        for array in inputs:
            total = zlib.crc32(np.ascontiguousarray(array).tobytes(), total)
    return total


def count_of(project: Project) -> int:
    """Return the number of inputs with recorded outputs, including the first one."""
    key = f"{OUTPUT}0"
    return 1 + (len(project.reference[key]) if key in project.reference else 0)


def inputs_of(project: Project, seed: int) -> list[Array]:
    """Return the inputs that ``build`` drew from ``seed``; states have their initial values."""
    known = project.metadata[DRAWN]
    tensors = [(tuple(t["shape"]), t["dtype"]) for t in project.inputs]
    allowed = {int(at): Range(*limits) for at, limits in known["allowed"].items()}
    made = drawn_inputs(tensors, allowed, seed)
    first = {int(at): value for at, value in known["states"].items()}
    return [np.full_like(a, first[i]) if i in first else a for i, a in enumerate(made)]


def in_qemu(project: Project, wanted: int | None) -> tuple[int, str]:
    """Run further inputs in QEMU; return the total number of inputs, and the error, or "".

    ``wanted``: the total number of inputs. None: all recorded ones within ``QEMU_S`` seconds of
    QEMU, and at least ``LEAST_INPUTS``.
    """
    held = count_of(project)
    if wanted is not None and not 1 <= wanted <= held:
        raise InputError(
            f"{project.folder}: --inputs {wanted}: build recorded the outputs of {held} inputs; "
            f"give 1 to {held}"
        )
    runs = [inputs_of(project, seed) for seed in range(1, held)] if held > 1 else []
    if runs and checksum(runs) != int(project.reference[CHECKSUM].reshape(-1)[0]):
        raise CheckError(
            f"{project.folder}: the installed numpy draws inputs that differ from those "
            "of the build; build the project again, or give --inputs 1"
        )
    begun, done, most = _qemu_seconds(), 1, wanted or held
    while done < most:
        spent = _qemu_seconds() - begun
        together = LEAST_INPUTS - 1 if done == 1 else most
        if wanted is None and done > 1:
            if spent > QEMU_S:
                break
            if spent:
                together = max(1, int((QEMU_S / spent - 1) * (done - 1)))
        for found in _runs(project, runs[done - 1 : min(done - 1 + together, most - 1)]):
            wrong = _wrong(project, done, found)
            done += 1
            if wrong:
                return done, wrong
    return done, ""


def _qemu_seconds() -> float:
    """Return the processor time of ended child processes, which other work does not affect."""
    spent = os.times()
    return spent.children_user + spent.children_system


def _runs(project: Project, runs: Sequence[Sequence[Array]]) -> list[Execution]:
    data = [[np.ascontiguousarray(a).tobytes() for a in inputs] for inputs in runs]
    return qemu_runs(project.folder, project.metadata["qemu"], data, len(project.outputs))


def _wrong(project: Project, seed: int, found: Execution) -> str:
    """Return the error in the run of the inputs drawn from ``seed`` as text, or ""."""
    for i, (raw, output) in enumerate(zip(found.outputs, project.outputs, strict=True)):
        want = project.reference[f"{OUTPUT}{i}"][seed - 1]
        got = np.frombuffer(raw, want.dtype).reshape(want.shape)
        apart = first_difference([want], [got], tolerance_of(project.metadata))
        if apart is not None:
            return f"output {output['name']!r} on input {seed + 1}: {apart.text()}"
    return ""


def tolerance_of(metadata: Mapping[str, Any]) -> Tolerance:
    """Return the tolerance between outputs in QEMU and on the machine that built the project.

    Integers must be equal, unless they are computed from floats: then they may differ by one.
    """
    floats = any(t["dtype"].startswith("float") for t in metadata["tensors"])
    return Tolerance(FLOAT.relative, steps=int(floats))
