"""Compares the outputs of a blob with those of the project of the same model, on this machine."""

import ctypes
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tvm_serenity.errors import WrongResultError
from tvm_serenity.firmware.blob.kernel_set import KernelSet
from tvm_serenity.firmware.blob.source import set_files, trial_source
from tvm_serenity.firmware.check.drawn_inputs import OUTPUT, count_of, inputs_of
from tvm_serenity.firmware.check.host_run import LIMIT_S, POISONS
from tvm_serenity.firmware.check.trial import compilation
from tvm_serenity.firmware.program import Array
from tvm_serenity.firmware.result import Project
from tvm_serenity.system.isolated import Death, isolated

TRIAL = "blob_trial.c"
MOST_INPUTS = 16
"""The most inputs that a blob is compared on."""


def loaded(
    image: bytes, known: KernelSet, runs: Sequence[Sequence[Array]], output_bytes: Sequence[int]
) -> list[tuple[int, list[bytes]]]:
    """Return what loading returned, and the outputs, for each of ``runs`` of ``image``.

    The kernel set and its loader are compiled for this machine. The blob lies in a buffer of its
    own size, the arena in another one that is poisoned before each run.
    """
    texts = {**set_files(known), TRIAL: trial_source(known)}
    sources = [name for name in texts if name.endswith(".c")]
    with tempfile.TemporaryDirectory(prefix="serenity.") as made:
        encoded = {name: text.encode() for name, text in texts.items()}
        started = compilation(Path(made), encoded, sources)
        try:
            library = started.library

            def work() -> Iterator[tuple[int, list[bytes]]]:
                for number, inputs in enumerate(runs):
                    poison = POISONS[number % len(POISONS)]
                    yield _run(library, image, known.arena_bytes, inputs, output_bytes, poison)

            return list(isolated(work, LIMIT_S))
        finally:
            started.stop()


def compare(image: bytes, known: KernelSet, project: Project) -> int:
    """Return the number of inputs on which the blob's outputs are those of ``project``.

    Raises :class:`WrongResultError` at the first difference.
    """
    name, count = project.metadata["name"], min(count_of(project) - 1, MOST_INPUTS)
    if not count:
        return 0
    runs = [inputs_of(project, seed) for seed in range(1, count + 1)]
    sizes = [output["size_bytes"] for output in project.outputs]
    try:
        found = loaded(image, known, runs, sizes)
    except Death as death:
        raise WrongResultError(f"{name}: {death} in a run of the blob") from None
    for number, (code, outputs) in enumerate(found):
        if code != 0:
            raise WrongResultError(
                f"{name}: the loader of the kernel set refuses the blob ({code})"
            )
        for i, (raw, described) in enumerate(zip(outputs, project.outputs, strict=True)):
            want = np.ascontiguousarray(project.reference[f"{OUTPUT}{i}"][number])
            if raw != want.tobytes():
                raise WrongResultError(
                    f"{name}: output {described['name']!r} of the blob is not that of the project "
                    f"on input {number + 2}"
                )
    return len(found)


def _run(
    library: ctypes.CDLL,
    image: bytes,
    arena_bytes: int,
    inputs: Sequence[Array],
    output_bytes: Sequence[int],
    poison: int,
) -> tuple[int, list[bytes]]:
    blob, arena = aligned(len(image)), aligned(arena_bytes)
    blob[:] = np.frombuffer(image, np.uint8)
    arena[:] = poison
    given = [np.ascontiguousarray(a) for a in inputs]
    made = [np.zeros(max(size, 1), np.uint8) for size in output_bytes]
    pointers = (ctypes.c_void_p * max(len(given), 1))(*(a.ctypes.data for a in given))
    results = (ctypes.c_void_p * max(len(made), 1))(*(a.ctypes.data for a in made))
    run = library.serenity_blob
    run.restype = ctypes.c_int32
    code = run(
        ctypes.c_void_p(blob.ctypes.data),
        ctypes.c_uint32(len(image)),
        ctypes.c_void_p(arena.ctypes.data),
        ctypes.c_uint32(arena_bytes),
        pointers,
        results,
    )
    return int(code), [a[:n].tobytes() for a, n in zip(made, output_bytes, strict=True)]


def aligned(size_bytes: int, alignment: int = 16) -> Array:
    """Return ``size_bytes`` of memory whose address is a multiple of ``alignment``."""
    room = np.zeros(size_bytes + alignment, np.uint8)
    skipped = -room.ctypes.data % alignment
    return room[skipped : skipped + size_bytes]
