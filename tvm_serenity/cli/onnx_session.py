"""``serenity schedule --for onnxruntime``: a file, its session options, and what a run takes."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tvm_serenity.cli import show
from tvm_serenity.errors import InputError, SerenityError
from tvm_serenity.files import write_bytes
from tvm_serenity.frontends import format_of, left_beside, load, save
from tvm_serenity.frontends.formats import all_formats, suffixes
from tvm_serenity.frontends.model_file import ModelFile
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
    snippet,
)
from tvm_serenity.schedule import Options, Schedule, check_schedule, schedule
from tvm_serenity.transform import Reduced

RUNTIME = "onnxruntime"
"""Whose sessions, at one level of its optimisations or another, ``--for`` names."""


@dataclass(frozen=True)
class Asked:
    """What the command was asked for beside the model."""

    output: str | None
    method: str
    options: Options
    check: bool
    json: bool
    others: tuple[str, ...] = ()
    """Options given that do not go with ``--for``."""


def said_of(opened: ModelFile) -> str:
    """Return what to know about who follows the order of a file that was written."""
    form = format_of(opened)
    return "" if form is None else form.after_order


def say_what_to_copy(opened: ModelFile, output: str) -> None:
    """Print which files with data of a model the file that was written looks for beside it."""
    for name in left_beside(opened, output):
        source, target = opened.path.parent / name, Path(output).parent / name
        show.console.print(f"its data is in another file: copy {source} to {target}")


def run_for(runtime: str, opened: ModelFile, dims: Mapping[str, int], asked: Asked) -> None:
    """Optimise ``opened``, order what comes out, write and measure it, print what was found."""
    if runtime not in LEVELS:
        raise InputError(f"--for {runtime!r}: there is {', '.join(LEVELS)}")
    form = format_of(opened)
    if form is None or form.runtime != RUNTIME:
        able = suffixes([one for one in all_formats() if one.runtime == RUNTIME])
        raise InputError(f"{opened.path}: --for {runtime} is for {able} files")
    if asked.others:
        raise InputError(f"--for {runtime} goes without {', '.join(asked.others)}")
    if asked.output is None:
        raise InputError(f"--for {runtime} writes a file: name it with -o")
    target = Path(asked.output)
    with tempfile.TemporaryDirectory() as folder:
        optimised, ordered = (Path(folder) / f"{name}.onnx" for name in ("optimised", "ordered"))
        _beside(opened, Path(folder))
        with show.progress("onnxruntime optimises the file") as line:
            optimise(opened.path, optimised, LEVELS[runtime])
            file = _read(opened, optimised, dims)
            reduced = as_allocated(file.graph)
            line.step(f"ordering {len(reduced.graph.ops)} ops")
            found = schedule(reduced.graph, asked.method, asked.options)
            if asked.check:
                check_schedule(reduced.graph, found.order, found.peak_bytes)
            save(file, reduced.expand(found.order), ordered)
            measured = None
            if can_measure():
                line.step("running both")
                measured = asdict(measure(opened.path, optimised, ordered, dims))
            write_bytes(target, ordered.read_bytes())
            write_bytes(options_path(target), session_json())
    result = _json(runtime, str(opened.path), reduced, found, target, measured)
    result["data_files"] = list(left_beside(opened, target))
    if asked.json:
        show.print_json(result)
    else:
        _print(result, opened)


def _beside(opened: ModelFile, folder: Path) -> None:
    """Put the files that hold data of a model into ``folder``, where its copies look for them."""
    for name in getattr(opened, "data_files", ()):
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(opened.path.parent / name, place)
        except OSError as error:
            reason = error.strerror or error
            raise InputError(
                f"{opened.path}: its data in {name!r} cannot be read: {reason}"
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


def _print(result: dict[str, Any], opened: ModelFile) -> None:
    measured = result["measured"]
    rows = {
        "predicted": f"{result['peak_bytes']:,} bytes, in the order before "
        f"{result['given_peak_bytes']:,}",
        "proof": f"{result['outcome']}: no order needs less than "
        f"{result['lower_bound_bytes']:,} bytes",
        "measured": "not on this system (needs /proc/self/clear_refs)",
    }
    if measured is not None:
        rows["measured"] = (
            f"{measured['ordered_bytes']:,} bytes more resident for runs; "
            f"as given, by default {measured['default_bytes']:,}"
        )
        rows["a run"] = (
            f"{1000 * measured['ordered_seconds']:,.1f} ms, by default "
            f"{1000 * measured['default_seconds']:,.1f}, one thread"
        )
        rows["outputs"] = (
            "the same bits in both orders; beside the default session "
            f"{measured['max_error']:.1e} of the largest"
        )
    show.facts(f"{result['model']} in onnxruntime: {result['ops']} ops", rows)
    show.console.print(f"written to {result['output']}, its options to {result['options_file']}")
    say_what_to_copy(opened, result["output"])
    show.plain(snippet(result["output"]))
