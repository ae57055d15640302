"""``run``: run a firmware project on the host or under QEMU."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tvm_serenity.commands.progress import Progress, silent
from tvm_serenity.errors import InputError
from tvm_serenity.firmware.check.verify import run_host, run_qemu
from tvm_serenity.firmware.result import Project, load
from tvm_serenity.options.checks import HOST, QEMU
from tvm_serenity.options.option import Conflict, HelpGroup, Option, OptionGroup, differing, option
from tvm_serenity.options.output import OUTPUT
from tvm_serenity.system.files import write_bytes


@dataclass(frozen=True, kw_only=True)
class RunOptions(OptionGroup):
    """The options of ``run``.

    ``host``, ``qemu``: where the project runs. ``inputs``: files of inputs. ``output``: the file of
    output 0.
    """

    host: bool = option(False, differing(HOST, help="Run on the host."))
    qemu: bool = option(
        False,
        differing(
            QEMU,
            help="Run in QEMU.",
            conflicts=(Conflict("host", "a run uses one of them"),),
        ),
    )
    inputs: Sequence[str] = option(
        (),
        Option(
            flag="--input",
            help="An input; repeat the option for several inputs.",
            group=HelpGroup.MODEL,
            metavar="FILE.npy",
        ),
    )
    output: str | None = option(None, differing(OUTPUT, metavar="FILE.npy", help="Save output 0."))


@dataclass(frozen=True)
class FirmwareRun:
    """The outputs of one run, and the instructions that QEMU emulated."""

    project: Project
    where: str
    outputs: Sequence[np.ndarray[Any, Any]]
    instructions: int | None
    stack_bytes: int

    @property
    def named(self) -> list[tuple[dict[str, Any], np.ndarray[Any, Any]]]:
        """The outputs with their metadata."""
        return list(zip(self.project.outputs, self.outputs, strict=True))

    def json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        return {
            "where": self.where,
            "instructions": self.instructions,
            "stack_bytes": self.stack_bytes or None,
            "outputs": {t["name"]: a.reshape(-1).tolist() for t, a in self.named},
        }


def run(directory: str, options: RunOptions | None = None, tell: Progress = silent) -> FirmwareRun:
    """Return the outputs of one run of a project, by default in QEMU if it emulates the board.

    Without ``options.inputs``, the run uses the inputs of the recorded reference.
    """
    options = options or RunOptions()
    project = load(directory)
    on_host = options.host or (not options.qemu and project.metadata["qemu"] is None)
    data = _inputs(project, options.inputs)
    with tell("running"):
        found = (run_host if on_host else run_qemu)(project, data, traced=False)
    arrays = [
        np.frombuffer(raw, t["dtype"]).reshape(project.windows, *t["shape"])[-1]
        for raw, t in zip(found.outputs, project.outputs, strict=True)
    ]
    if options.output is not None:
        _save(options.output, arrays[0])
    where = "host" if on_host else f"{project.metadata['board']} (QEMU)"
    return FirmwareRun(project, where, arrays, found.instructions, found.stack_bytes)


def _inputs(project: Project, files: Sequence[str]) -> list[Any]:
    if not files:
        return project.reference_inputs()
    if len(files) != len(project.inputs):
        raise InputError(f"{len(files)} --input given, {len(project.inputs)} inputs needed")
    found = []
    for file, tensor in zip(files, project.inputs, strict=True):
        try:
            array = np.load(file, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{file}: cannot be read: {reason}") from None
        size = int(np.prod(tensor["shape"], dtype=np.int64))
        moving = project.metadata.get("moving")
        if moving is not None:  # a stream of rows
            size = moving["rows"] * (size // moving["window"])
        if not isinstance(array, np.ndarray) or str(array.dtype) != tensor["dtype"]:
            stored = getattr(array, "dtype", type(array).__name__)
            raise InputError(
                f"{file}: the array has type {stored}, but input {tensor['name']!r} needs "
                f"{tensor['dtype']}"
            )
        if array.size != size:
            raise InputError(
                f"{file}: {array.size} elements; input {tensor['name']!r} has {size}, "
                + (f"{moving['rows']} rows" if moving else f"shape {tuple(tensor['shape'])}")
            )
        found.append(array)
    return found


def _save(path: str, array: np.ndarray[Any, Any]) -> None:
    data = io.BytesIO()
    np.save(data, array)
    write_bytes(Path(path), data.getvalue())
