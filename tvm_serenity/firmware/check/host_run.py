"""Runs a project's network on this machine, in a poisoned arena, before it is written."""

import ctypes
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_serenity.errors import WrongResultError
from tvm_serenity.firmware.board.execute import Execution
from tvm_serenity.firmware.check.drawn_inputs import LEAST_INPUTS, MOST_INPUTS
from tvm_serenity.firmware.check.reference_runtime import OUTPUT, SAID, Recorded, note_of
from tvm_serenity.firmware.check.verify import Deviation, difference, reference_difference
from tvm_serenity.firmware.program import Array
from tvm_serenity.firmware.result import Project
from tvm_serenity.firmware.ulp import close
from tvm_serenity.system.isolated import Death, isolated
from tvm_serenity.validation.disagreement import disagreement
from tvm_serenity.validation.report import first_difference

Runs = list[tuple[Sequence[Array], list[Array]]]
"""Inputs, and the outputs for them."""
MOST_STEPS = 2 * 10**9
"""The maximum of innermost loop steps of all runs together; it limits the number of inputs."""
LIMIT_S = 300.0
POISONS = (0xA5, 0x5A)


@dataclass(frozen=True)
class Rehearsed:
    """The counts of a run: compared tensors, and inputs.

    ``without``: why outputs were not compared with the model's runtime, "" if they were.
    ``inputs``: the number of inputs whose outputs were compared; ``reference_inputs``: how many of
    them with the runtime's outputs.
    ``transferred_bytes``: what the port copied; None without transfers.
    """

    tensors: int
    has_reference: bool
    without: str
    inputs: int = 0
    reference_inputs: int = 0
    transferred_bytes: int | None = None


def rehearse(
    library: ctypes.CDLL, files: Mapping[str, bytes], reference: Mapping[str, Array]
) -> Rehearsed:
    """Run the network twice with different poison; return the counts of compared tensors.

    Each tensor is compared with ``reference`` when it is written, outputs also with the runtime's
    outputs in it. Raises :class:`WrongResultError`.
    """
    project = Project(None, json.loads(files["metadata.json"]), reference)
    name = project.metadata["name"]
    inputs = [reference[f"input{i}"] for i in range(sum(k.startswith("input") for k in reference))]

    def work() -> Iterator[Execution]:
        for poison in POISONS:
            yield _run(library, project, inputs, poison)

    count, copied = 0, None
    try:
        for found in isolated(work, LIMIT_S):
            _transferred(project, found)
            off = difference(project, found.trace)
            if not off.accepted:
                raise WrongResultError(f"{name}: {_off(off)} when the whole network runs")
            count, copied = off.tensors, found.transferred_bytes
            _outputs(project, found.outputs, reference)
            _check_reference(project, found)
    except Death as death:
        raise WrongResultError(f"{name}: {death} in a run of the network") from None
    has_reference = f"{OUTPUT}0" in reference
    return Rehearsed(count, has_reference, note_of(reference), 1, int(has_reference), copied)


def runs_for(steps: int) -> int:
    """Return the number of inputs on which a network of ``steps`` innermost steps is compared."""
    return max(LEAST_INPUTS, min(MOST_INPUTS, MOST_STEPS // max(steps, 1)))


def rehearse_more(
    library: ctypes.CDLL,
    files: Mapping[str, bytes],
    runs: Sequence[tuple[Sequence[Array], Recorded | Mapping[str, Array]]],
) -> Runs:
    """Run the network on further inputs; return the inputs with their confirmed outputs.

    ``runs``: inputs, with the runtime's outputs, or TVM's outputs by their keys in a reference. If
    the runtime differs, a second reference decides. Raises :class:`WrongResultError`.
    """
    metadata = json.loads(files["metadata.json"])

    def work() -> Iterator[Execution]:
        for number, (inputs, _) in enumerate(runs):
            yield _run(library, Project(None, metadata, {}), inputs, POISONS[number % 2])

    try:
        found = list(isolated(work, LIMIT_S))
    except Death as death:
        raise WrongResultError(f"{metadata['name']}: {death} in a run of the network") from None
    made = [_arrays(metadata, one) for one in found]
    for (_, want), one in zip(runs, found, strict=True):
        if not isinstance(want, Recorded):
            _outputs(Project(None, metadata, want), one.outputs, want)
    answers = [want for _, want in runs]
    pairs = [
        (want, outputs)
        for want, outputs in zip(answers, made, strict=True)
        if isinstance(want, Recorded) and _deviates(want, outputs)
    ]
    _settle(metadata, pairs)
    return [(inputs, outputs) for (inputs, _), outputs in zip(runs, made, strict=True)]


def _deviates(answer: Recorded, made: Sequence[Array]) -> bool:
    """Return whether outputs deviate from the runtime's by more than its tolerance."""
    assert answer.spec is not None
    want = answer.shaped(made)
    return first_difference(want, made[: len(want)], answer.spec.tolerance) is not None


def _settle(metadata: Mapping[str, Any], pairs: Sequence[tuple[Recorded, Sequence[Array]]]) -> None:
    """Raise :class:`WrongResultError` for outputs that differ from the runtime's and are wrong."""
    spec = next((answer.spec for answer, _ in pairs), None)
    if spec is None:
        return
    answers = [(answer.inputs, answer.shaped(made)) for answer, made in pairs]
    results = [made[: len(want)] for (_, want), (_, made) in zip(answers, pairs, strict=True)]
    found = disagreement(spec, answers, results)
    if found.difference is not None:
        output = metadata["tensors"][metadata["outputs"][found.difference.output]]
        raise WrongResultError(
            f"{metadata['name']}: wrong against the model's own runtime: output "
            f"{output['name']!r}: {found.difference.text()}{found.said and '; '}{found.said}"
        )


def _arrays(metadata: Mapping[str, Any], found: Execution) -> list[Array]:
    """Return the outputs of a run with their types and shapes."""
    described = [metadata["tensors"][t] for t in metadata["outputs"]]
    pairs = zip(found.outputs, described, strict=True)
    return [np.frombuffer(data, t["dtype"]).reshape(t["shape"]) for data, t in pairs]


def _off(off: Deviation) -> str:
    """Return a difference as text."""
    if not off.tensors:
        return "the tensors written, or their order, differ from the plan"
    return f"tensor {off.first!r} is wrong by {off.max_abs_error:g} compared with TVM's"


def _transferred(project: Project, found: Execution) -> None:
    """The port has copied what the transfer plan says."""
    planned = project.metadata["transferred_bytes"]
    if found.transferred_bytes != planned:
        raise WrongResultError(
            f"{project.metadata['name']}: {found.transferred_bytes} bytes are copied between its "
            f"memories, {planned} are planned"
        )


def _outputs(project: Project, outputs: Sequence[bytes], reference: Mapping[str, Array]) -> None:
    """Raise :class:`WrongResultError` if the caller gets other outputs or states than computed."""
    for index, (described, raw) in enumerate(zip(project.outputs, outputs, strict=True)):
        want = np.ascontiguousarray(reference[f"output{index}"]).reshape(-1)
        got = np.frombuffer(raw, want.dtype)
        same = got.tobytes() == want.tobytes()
        if not same and want.dtype == np.float32 and got.size == want.size:
            same = close(got, want, project.ulp_limit)
        if not same:
            raise WrongResultError(
                f"{project.metadata['name']}: output {described['name']!r} is not what the "
                "network computes"
            )


def _check_reference(project: Project, found: Execution) -> None:
    deviation = reference_difference(project, found)
    if deviation is not None and deviation[1]:
        said = f"; {project.reference[SAID]}" if SAID in project.reference else ""
        raise WrongResultError(
            f"{project.metadata['name']}: wrong against the model's own runtime: "
            f"{deviation[1]}{said}"
        )


_SINK = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32)


def _run(library: ctypes.CDLL, project: Project, inputs: Sequence[Array], poison: int) -> Execution:
    written: list[tuple[int, bytes]] = []

    def take(tensor: int, data: int | None, size: int) -> None:
        written.append((tensor, ctypes.string_at(data or 0, size) if size else b""))

    sink = _SINK(take)
    library.serenity_sink(sink)
    given = [np.asarray(a, order="C") for a in inputs]
    sizes = [t["size_bytes"] * project.windows for t in project.outputs]
    made = [np.zeros(max(size, 1), np.uint8) for size in sizes]
    pointers = (ctypes.c_void_p * max(len(given), 1))(*(a.ctypes.data for a in given))
    results = (ctypes.c_void_p * max(len(made), 1))(*(a.ctypes.data for a in made))
    count: int | None = None
    library.serenity_trial.restype = ctypes.c_int32
    status = library.serenity_trial(pointers, results, ctypes.c_int(poison))
    if status != 0:
        raise RuntimeError(f"the trial returned status {status}")
    outputs = tuple(a[:n].tobytes() for a, n in zip(made, sizes, strict=True))
    if project.metadata["transferred_bytes"] is not None:
        library.serenity_transferred.restype = ctypes.c_uint64
        count = int(library.serenity_transferred())
    return Execution(outputs, tuple(written), None, 0, count)
