"""``serenity rows --sliding``: what a step of a window that moves along a stream takes."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape
from rich.table import Table

from tvm_serenity.cli import show
from tvm_serenity.cli.models import ModelSource, Part, source
from tvm_serenity.deadline import within
from tvm_serenity.errors import InputError, WrongResultError
from tvm_serenity.files import write_bytes
from tvm_serenity.rows.limits import Limits

if TYPE_CHECKING:
    from tvm_serenity.relax.sliding import SlidingModule
    from tvm_serenity.sliding.choose import StepPoint


def sliding_command(
    model: str,
    step: int,
    of: Part,
    *,
    causal: str | None,
    ram: int | None,
    curve_too: bool,
    time_limit: float | None,
    check: bool,
    run: bool,
    json: bool,
    others: Mapping[str, object],
) -> None:
    """Find and print one step of ``step`` rows; ``others`` are options it does not go with.

    ``causal``: where to write the network that looks back instead, which is then looked at.
    ``run``: on 50 windows, each compared with the whole network and the model's own runtime.
    ``ram``: the step of least work whose arena takes no more; ``curve_too``: all that none beats.
    """
    for option, value in others.items():
        if value not in (None, False):
            raise InputError(f"{option} does not go with --sliding: a step has bands of one row")
    opened = source(model, of)
    opened.check_operators()  # before TVM, whose import takes seconds
    before = None
    if causal is not None:
        before, opened = _causal(model, causal)
    from tvm_serenity.relax.attributes import first_values
    from tvm_serenity.relax.pipeline import Steps, prepared
    from tvm_serenity.relax.rows_read import read_rows
    from tvm_serenity.relax.rows_reads import operations, row_reads
    from tvm_serenity.relax.sliding import as_module
    from tvm_serenity.sliding import moved, sliding_step
    from tvm_serenity.sliding.check import check_windows
    from tvm_serenity.sliding.choose import curve, within_bytes
    from tvm_serenity.sliding.described import described_point, described_step

    module = opened.module()
    first = first_values(module["main"])
    rows = read_rows(prepared(module, Steps(layout="last"), "llvm").plain, model)
    reads = row_reads(rows)
    show.warn_without_core()
    with within(time_limit), show.progress(f"a step of {model}") as report:
        limits, counts = Limits.within(time_limit, report), operations(rows)
        window = moved(rows.network, step, reads, len(first))
        found = sliding_step(window.steady(), limits)
        points: tuple[StepPoint, ...] = ()
        if curve_too or (ram is not None and found.arena_bytes > ram):
            points = curve(window, counts, limits)
            chosen = points[0] if ram is None else within_bytes(points, ram) or points[-1]
            found = chosen.step
    met = ram is None or found.arena_bytes <= ram
    for one in (found, *(point.step for point in points)) if check else ():
        one.streaming.check()
        check_windows(one, reads)
    result = described_step(found, counts)
    result["causal"] = None if before is None else {"written": causal, "window_before": before}
    result["run"] = _run(as_module(rows, found, first), opened.judged()) if run else None
    if json:
        shown = [described_point(point) for point in points if curve_too]
        show.print_json({"model": model, **result, "met": met, "curve": shown, "checked": check})
    else:
        _print(model, result, [point for point in points if curve_too])
    if not met:
        raise typer.Exit(1)


def _run(made: "SlidingModule", model: str) -> dict[str, Any]:
    """Windows on the Relax VM; :class:`WrongResultError` for one that differs."""
    from tvm_serenity.runtime.stream import run_windows
    from tvm_serenity.validation.network import judge_for, judged

    found = run_windows(made)
    if found.differ:
        windows = len(found.windows)
        raise WrongResultError(
            f"{model}: {found.differ} of {windows} windows differ from the whole network"
        )
    judge = judge_for(model)
    said: dict[str, Any] = {"windows": len(found.windows), "referee": None}
    if judge is not None:
        runs = [([x], y) for x, y in zip(found.windows, found.outputs, strict=True)]
        verdict = judged(judge, runs)
        if verdict.outcome == "wrong":
            raise WrongResultError(f"{model}: {verdict.text()}")
        said["referee"] = verdict.text()
    return said


def _causal(model: str, output: str) -> tuple[int, ModelSource]:
    """Write the network that looks back instead of padding; the rows of its window before."""
    from tvm_serenity.frontends.tflite_causal import causal

    if Path(model).suffix.lower() != ".tflite" or Path(output).suffix.lower() != ".tflite":
        raise InputError(f"{model}: --causal writes .tflite files, of .tflite files")
    found = causal(Path(model).read_bytes(), model)
    write_bytes(Path(output), found.data)
    return found.before, source(output)


def _print(model: str, result: dict[str, Any], points: "list[StepPoint]") -> None:
    facts = {
        "step": f"{result['step']} of {result['window']} rows; "
        f"the first window is full after {result['steps_to_fill']} steps",
        "work": f"{result['work']:.1%} of the operations of a whole window",
        "kept": f"{result['kept_bytes']:,} bytes between two steps",
        "arena": f"{result['arena_bytes']:,} bytes, with what a step works on",
        "proof": f"{result['outcome']}: no order of this step needs less than "
        f"{result['lower_bound_bytes']:,} bytes",
        "outputs": "those of the whole window, bit for bit: rows that see padding are made again",
    }
    if result["causal"] is not None:
        known = result["causal"]
        facts["network"] = (
            f"another one: rows of the past instead of padding in time, a window of "
            f"{result['window']} rows instead of {known['window_before']}; written to "
            f"{known['written']}"
        )
        facts["outputs"] = "those of that network, bit for bit"
        facts["next"] = f"serenity build {known['written']} --sliding {result['step']} --board ..."
    if result["phases"] > 1:
        facts["phases"] = (
            f"{result['phases']}: behind a stride, rows of one step are others than those of the "
            f"next; as many sets of them are kept and take turns"
        )
    if result["run"] is not None:
        said = result["run"]
        facts["run"] = f"{said['windows']} windows on the Relax VM, each as the whole network's"
        facts["run"] += "" if said["referee"] is None else f"; {said['referee']}"
    if result["states"]:
        facts["states"] = (
            f"{result['states']}, which the network keeps itself: each step takes in new rows alone"
        )
        facts["outputs"] = "those of the network on these rows and its states, bit for bit"
    if result["anew"]:
        facts["made anew from"] = "; ".join(result["anew"][:3])
    show.facts(f"{model} on a window that moves", facts)
    if not points:
        return
    table = Table(box=None)
    for name in ("work", "arena", "no less than", "kept"):
        table.add_column(name, justify="right")
    table.add_column("of", justify="left")
    for point in points:
        steady = point.step.steady
        blocks = [f for f in point.step.blocks if f != steady.source]
        names = ", ".join(steady.network.features[f].name for f in blocks)
        table.add_row(
            f"{point.work:.1%}",
            f"{point.step.arena_bytes:,}",
            f"{point.least_bytes:,}",
            f"{steady.kept_bytes:,}",
            escape(names or "the input alone"),
        )
    show.console.print(table)
