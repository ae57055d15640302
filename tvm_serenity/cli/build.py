"""``serenity build``: write a firmware project for a model and check that it fits its board."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tvm_serenity.cli import show
from tvm_serenity.cli.channels import channels_text
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.options import Board, Model
from tvm_serenity.commands.build import BuildOptions, BuiltFirmware, build
from tvm_serenity.errors import FitError
from tvm_serenity.options.option import Option, option
from tvm_serenity.options.output import PROJECT, Shown

if TYPE_CHECKING:
    from tvm_serenity.firmware.result import Project
    from tvm_serenity.fitting.measure import BuildFigures


@dataclass(frozen=True, kw_only=True)
class ShownBuild(Shown):
    """The options of what ``build`` prints.

    ``why``: also print the kernel of each operator.
    """

    why: bool = option(
        False,
        Option(
            flag="--why", help="Print each operator's kernel, its cycles and the rejected kernels."
        ),
    )


@command("build", required=("output",))
def build_command(model: Model, board: Board, options: BuildOptions, shown: ShownBuild) -> None:
    """Build the best firmware of MODEL for a board: the fastest that fits, or the smallest.

    The firmware is C source that needs no runtime library and no malloc. DIR receives the C
    interface (NAME_model.h and NAME_model.c), kernels, weights, a linker script that enforces the
    memory sizes, an example, a test harness, Makefile and CMakeLists.txt. Before DIR is written,
    the project is linked, measured and compared with the reference in a temporary folder.

    The search chooses the operator order, in-place kernels and overlap, workspace upgrades,
    constants in RAM and bands of rows. An option fixes the choice that it names; serenity fit
    prints all builds. If no build fits, nothing is written and the exit status is 1.

    [dim]Examples[/dim]
      serenity build kws.tflite --board netduinoplus2 -o kws
      serenity build person.tflite --board microbit --minimise ram -o person
    """
    show.warn_without_core()
    try:
        built = build(model, board, options, show.progress)
    except FitError as error:
        if shown.json:
            show.print_json({**error.facts, "search": None})
        else:
            show.facts(f"{model} {error}", _refused(error.facts))
        raise typer.Exit(1) from None
    _show(model, built, options, shown)


def _show(model: str, built: BuiltFirmware, options: BuildOptions, shown: ShownBuild) -> None:
    """Print the sizes of a project and its estimated latency; with ``why`` also its kernels."""
    from tvm_serenity.cli import kernel_choices, latency_line

    project, output = built.project, str(options.output)
    facts = {**project.facts, "search": built.search(model, output)}
    if shown.json and not shown.why:
        show.print_json(facts)
        return
    estimate = latency_line.estimated(project)
    if shown.json:
        show.print_json({**facts, "choices": kernel_choices.priced(project, estimate)})
        return
    rows = {**_chosen(built, model, output), **_built(project), **latency_line.rows(estimate)}
    rows["next"] = advice(options.format, output, project.metadata["name"])
    show.facts(f"{model} on {project.metadata['board']}: {output}", rows)
    if shown.why:
        kernel_choices.show_choices(kernel_choices.priced(project, estimate), estimate)


def _chosen(built: BuiltFirmware, model: str, output: str) -> dict[str, str]:
    """Return the chosen build with its sizes, the alternatives, and the command that repeats it."""
    chosen = built.chosen
    if built.fitted is None or chosen is None:
        return {}
    rows = {f"least {built.fitted.goal.minimise}": _priced(chosen)}
    rows["alternatives"] = "; ".join(map(_priced, built.alternatives)) or "no build is smaller"
    rows["same build"] = built.command(model, output)
    if not built.fitted.complete:
        rows["unfinished"] = "time limit: the best so far"
    return rows


def _priced(one: "BuildFigures") -> str:
    """Return the strategy of a build with its run time and sizes."""
    sizes = f"{one.ram_bytes:,} bytes of RAM, {one.flash_bytes:,} of flash"
    if not one.linked:
        sizes += " without code"
    if one.run is None:
        return f"{one.how}: {sizes}"
    if one.run.milliseconds is None:
        return f"{one.how}: {one.run.least:,} {one.run.unit}, {sizes}"
    return f"{one.how}: {one.run.milliseconds[1]:.3g} ms, {sizes}"


def advice(formats: str, output: str, name: str) -> str:
    """Return the command that uses a project of the format ``formats`` next."""
    return {
        PROJECT: f"serenity verify {output}",
        "mlf": f"unpack {output}/{name}.tar; include codegen/host/include/tvmgen_{name}.h",
        "zephyr": f"cmake -DZEPHYR_EXTRA_MODULES={Path(output).resolve()}",
        "arduino": f"arduino-cli compile --library {output}",
    }[formats] + ("" if formats == PROJECT else "; serenity verify needs --format project")


def _regions(facts: Mapping[str, Any]) -> dict[str, str]:
    rows = {}
    for region in facts["regions"]:
        shortfall = region["shortfall_bytes"]
        text = f"{region['need_bytes']:,} of {region['size_bytes']:,} bytes ({region['detail']})"
        rows[region["name"]] = text + (f", {shortfall:,} bytes short" if shortfall else "")
    return rows


def _banded(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts of a network in bands of rows; none of an unsplit network."""
    from tvm_serenity.rows.described import recomputed_text

    bands = facts["rows"]
    if bands is None:
        return {}
    window = facts["sliding"]
    scope = "at these bands" if window is None else "of a step"
    rows = {
        "arena": f"{bands['arena_bytes']:,} bytes; no order {scope} needs less than "
        f"{bands['lower_bound_bytes']:,}"
    }
    if window is None:
        rows["rows per band"] = bands["rows"]
    else:
        rows["retained rows"] = f"{window['kept_bytes']:,} bytes of the arena, between two steps"
        rows["steps"] = (
            f"{window['step']} new rows of a window of {window['window']}; the first window is "
            f"full after {window['steps_to_fill']} steps"
        )
    rows["tables"] = f"{bands['table_bytes']:,} bytes for {facts['steps']:,} kernel calls"
    if bands["recompute"] is not None:
        rows["recomputation"] = recomputed_text(bands["recompute"])
    if bands["left_whole"]:
        rows["unsplit"] = "; ".join(bands["left_whole"])
    return rows


def _tried(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the fallback strategies that were tried; none if the network fits unsplit."""
    from tvm_serenity.firmware.board.fit import Way

    ways = [Way(**way).text() for way in facts["tried"]]
    return {"tried": "; ".join(ways)} if ways else {}


def _refused(facts: Mapping[str, Any]) -> dict[str, str]:
    rows = {**_regions(facts), **_banded(facts), **_tried(facts)}
    if facts["arena_limit_bytes"] is not None:
        arena = sum(facts["arena_bytes"].values())
        rows["limit"] = f"an arena of {facts['arena_limit_bytes']:,} bytes; it needs {arena:,}"
    rows["live at the peak"] = ", ".join(
        f"{r['name']} {r['size_bytes']:,}" for r in facts["peak"][:8]
    )
    if not all(line["shortfall_bytes"] == 0 for line in facts["regions"]):
        rows["boards that fit"] = ", ".join(facts["boards"]) or "no known board"
    return rows


def _built(project: "Project") -> dict[str, str]:
    from tvm_serenity.firmware.board import image
    from tvm_serenity.firmware.board.toolchain import PACKAGES

    facts = project.facts
    rows = {**_regions(facts), **_banded(facts), **_tried(facts)}
    rows["kernels"] = f"{facts['kernels']}, called in {facts['steps']:,} steps"
    if facts["kept_float"]:
        rows["float kernels"] = "; ".join(facts["kept_float"])
    if skipped := channels_text(facts["channels"]):
        rows["channels"] = skipped
    if not image.linkable():
        rows["not compiled"] = f"apt-get install {PACKAGES['arm-none-eabi-gcc']}"
    rows["checks"] = facts["check"]["text"]
    return rows
