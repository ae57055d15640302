"""A project's whole network on this machine, in an arena full of garbage, before it is written."""

import ctypes
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import WrongResultError
from tvm_serenity.firmware.execute import Execution
from tvm_serenity.firmware.more import LEAST_INPUTS, MOST_INPUTS
from tvm_serenity.firmware.program import Array
from tvm_serenity.firmware.referee import OUTPUT, note_of
from tvm_serenity.firmware.result import Project
from tvm_serenity.firmware.ulp import close
from tvm_serenity.firmware.verify import Deviation, difference, referee_difference
from tvm_serenity.validation.isolated import Death, isolated

MOST_STEPS = 2 * 10**9
"""Innermost steps of all runs of a network together, where that is fewer inputs."""
LIMIT_S = 300.0
POISONS = (0xA5, 0x5A)


@dataclass(frozen=True)
class Rehearsed:
    """How many tensors were compared when written; whether the model's runtime agreed, or why not.

    ``without`` is empty where it did. ``inputs``: on how many inputs outputs were compared;
    ``judged_inputs``: on how many of them with the runtime's.
    """

    tensors: int
    judged: bool
    without: str
    inputs: int = 0
    judged_inputs: int = 0


def rehearse(
    library: ctypes.CDLL, files: Mapping[str, bytes], reference: Mapping[str, Array]
) -> Rehearsed:
    """Run the network twice, each time on other garbage; return what was compared.

    Every tensor when it is written with ``reference``, outputs with the runtime's that it holds.
    Raises :class:`WrongResultError`.
    """
    project = Project(None, json.loads(files["metadata.json"]), reference)
    name = project.metadata["name"]
    inputs = [reference[f"input{i}"] for i in range(sum(k.startswith("input") for k in reference))]

    def work() -> Iterator[Execution]:
        for poison in POISONS:
            yield _run(library, project, inputs, poison)

    count = 0
    try:
        for found in isolated(work, LIMIT_S):
            off = difference(project, found.trace)
            if not off.accepted:
                raise WrongResultError(f"{name}: {_off(off)} when the whole network runs")
            count = off.tensors
            _outputs(project, found.outputs, reference)
            _judge(project, found)
    except Death as death:
        raise WrongResultError(f"{name}: {death} when the whole network runs") from None
    judged = f"{OUTPUT}0" in reference
    return Rehearsed(count, judged, note_of(reference), 1, int(judged))


def runs_for(steps: int) -> int:
    """Return on how many inputs a network of so many innermost steps is compared."""
    return max(LEAST_INPUTS, min(MOST_INPUTS, MOST_STEPS // max(steps, 1)))


def rehearse_more(
    library: ctypes.CDLL,
    files: Mapping[str, bytes],
    runs: Sequence[tuple[Sequence[Array], Mapping[str, Array]]],
) -> list[tuple[Sequence[Array], list[Array]]]:
    """Run the network on more inputs; return these with its outputs, which are right.

    ``runs``: inputs, and a reference of each: what ``referee.as_reference`` holds of the runtime's
    answer, or TVM's outputs. Raises :class:`WrongResultError`.
    """
    metadata = json.loads(files["metadata.json"])
    made: list[tuple[Sequence[Array], list[Array]]] = []

    def work() -> Iterator[Execution]:
        for number, (inputs, reference) in enumerate(runs):
            project = Project(None, metadata, reference)
            yield _run(library, project, inputs, POISONS[number % 2])

    try:
        for (inputs, reference), found in zip(runs, isolated(work, LIMIT_S), strict=True):
            project = Project(None, metadata, reference)
            if "output0" in reference:
                _outputs(project, found.outputs, reference)
            _judge(project, found)
            made.append((inputs, _arrays(project, found)))
    except Death as death:
        raise WrongResultError(f"{metadata['name']}: {death} when the network runs") from None
    return made


def _arrays(project: Project, found: Execution) -> list[Array]:
    return [
        np.frombuffer(raw, t["dtype"]).reshape(t["shape"])
        for raw, t in zip(found.outputs, project.outputs, strict=True)
    ]


def _off(off: Deviation) -> str:
    """A difference in words."""
    if not off.tensors:
        return "other tensors are written, or in another order, than planned"
    return f"tensor {off.first!r} is wrong, {off.max_abs_error:g} apart from TVM's"


def _outputs(project: Project, outputs: Sequence[bytes], reference: Mapping[str, Array]) -> None:
    """Outputs and new states, where the caller finds them, are what the last kernels made."""
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


def _judge(project: Project, found: Execution) -> None:
    judged = referee_difference(project, found)
    if judged is not None and judged[1]:
        raise WrongResultError(
            f"{project.metadata['name']}: wrong against the model's own runtime: {judged[1]}"
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
    library.serenity_trial.restype = ctypes.c_int32
    status = library.serenity_trial(pointers, results, ctypes.c_int(poison))
    if status != 0:
        raise RuntimeError(f"it returned {status}")
    outputs = tuple(a[:n].tobytes() for a, n in zip(made, sizes, strict=True))
    return Execution(outputs, tuple(written), None, 0)
