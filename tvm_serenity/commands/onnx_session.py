"""``schedule --for onnxruntime``: write a model with session options, and measure its run."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tvm_serenity.commands.progress import Progress
from tvm_serenity.errors import InputError, SerenityError
from tvm_serenity.frontends import format_of, left_beside, load, save
from tvm_serenity.frontends.formats import all_formats, suffixes
from tvm_serenity.frontends.model_file import ModelFile
from tvm_serenity.graph.reduced import Reduced
from tvm_serenity.memory import peak_bytes
from tvm_serenity.onnx_session import (
    LEVELS,
    SESSION_OPTIONS,
    as_allocated,
    can_measure,
    measure,
    optimise,
    options_path,
    session_json,
)
from tvm_serenity.schedule import Options, Schedule, check_schedule, schedule
from tvm_serenity.system.files import write_bytes

RUNTIME = "onnxruntime"
"""The runtime whose optimisation levels ``--for`` names."""


@dataclass(frozen=True)
class SessionFile:
    """A file that onnxruntime runs in the given order: its source model and the figures."""

    opened: ModelFile
    figures: Mapping[str, Any]

    def json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        return dict(self.figures)


@dataclass(frozen=True)
class Asked:
    """A request: the level of ``runtime``, the file ``target`` and the options of the search."""

    runtime: str
    target: Path
    dims: Mapping[str, int]
    method: str
    options: Options
    check: bool


def run_for(opened: ModelFile, asked: Asked, tell: Progress) -> SessionFile:
    """Return ``opened`` optimised by onnxruntime and ordered, after writing and measuring it."""
    runtime, target = asked.runtime, asked.target
    form = format_of(opened)
    if form is None or form.runtime != RUNTIME:
        able = suffixes([one for one in all_formats() if one.runtime == RUNTIME])
        raise InputError(f"{opened.path}: --for {runtime} writes only {able} files")
    with tempfile.TemporaryDirectory() as folder:
        optimised, ordered = (Path(folder) / f"{name}.onnx" for name in ("optimised", "ordered"))
        _beside(opened, Path(folder))
        with tell("onnxruntime optimises the file") as line:
            optimise(opened.path, optimised, LEVELS[runtime])
            file = _read(opened, optimised, asked.dims)
            reduced = as_allocated(file.graph)
            line.step(f"ordering {len(reduced.graph.ops)} ops")
            found = schedule(reduced.graph, asked.method, asked.options)
            if asked.check:
                check_schedule(reduced.graph, found.order, found.peak_bytes)
            save(file, reduced.expand(found.order), ordered)
            measured = None
            if can_measure():
                line.step("running both")
                measured = asdict(measure(opened.path, optimised, ordered, asked.dims))
            write_bytes(target, ordered.read_bytes())
            write_bytes(options_path(target), session_json())
    figures = _json(runtime, str(opened.path), reduced, found, target, measured)
    figures["data_files"] = list(left_beside(opened, target))
    return SessionFile(opened, figures)


def _beside(opened: ModelFile, folder: Path) -> None:
    """Copy the external data files of a model into ``folder``, where its copies read them."""
    for name in getattr(opened, "data_files", ()):
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(opened.path.parent / name, place)
        except OSError as error:
            reason = error.strerror or error
            raise InputError(
                f"{opened.path}: the external data file {name!r} cannot be read: {reason}"
            ) from None


def _read(opened: ModelFile, optimised: Path, dims: Mapping[str, int]) -> ModelFile:
    try:
        return load(optimised, dims)
    except SerenityError as error:
        why = str(error).removeprefix(f"{optimised}: ")
        raise type(error)(f"{opened.path}, as onnxruntime optimises it: {why}") from None


def _json(
    runtime: str,
    model: str,
    reduced: Reduced,
    found: Schedule,
    target: Path,
    measured: dict[str, Any] | None,
) -> dict[str, Any]:
    return {
        "model": model,
        "for": runtime,
        "ops": reduced.nodes,
        "given_peak_bytes": peak_bytes(reduced.graph),
        "peak_bytes": found.peak_bytes,
        "lower_bound_bytes": found.lower_bound_bytes,
        "outcome": str(found.outcome),
        "order": list(reduced.expand(found.order)),
        "seconds": found.seconds,
        "session_options": dict(SESSION_OPTIONS),
        "measured": measured,
        "output": str(target),
        "options_file": str(options_path(target)),
    }
