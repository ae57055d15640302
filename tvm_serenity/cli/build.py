"""``serenity build``: from a model file to a firmware project that fits its board."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tvm_serenity.boards import board
from tvm_serenity.cli import show
from tvm_serenity.cli.channels import said_of_channels
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.options import Board, Model
from tvm_serenity.commands.models import source
from tvm_serenity.errors import FitError
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.options.option import Option, option
from tvm_serenity.options.output import PROJECT, Shown
from tvm_serenity.quantize.choices import OFF

if TYPE_CHECKING:
    from tvm_serenity.firmware.result import Project


@dataclass(frozen=True, kw_only=True)
class ShownBuild(Shown):
    """``why``: the kernel of each operator, too."""

    why: bool = option(
        False,
        Option(
            flag="--why", help="Say which kernel each operator has, its cycles, and why no other."
        ),
    )


@command("build", required=("output",))
def build_command(model: Model, board_name: Board, options: Settings, shown: ShownBuild) -> None:
    """Build firmware for MODEL: quantise, order, plan, write C, and check that it fits the board.

    Without a runtime and without malloc: DIR receives NAME_model.h and NAME_model.c (the C
    interface), kernels, weights, a linker script that refuses what does not fit, an example, a
    harness, Makefile and CMakeLists.txt. It is linked, measured and compared in a folder of its
    own first. A network that does not fit whole is built in the first way that does: kernels that
    overwrite what dies, rewritten, by rows (serenity fit measures all of them and more). Exit
    status 1, and nothing is written, when none does.

        serenity build kws.tflite --board netduinoplus2 -o kws && serenity verify kws
        serenity build person.tflite --board microbit -o person
    """
    target = board(board_name)
    show.warn_without_core()
    try:
        with show.progress(f"building {model}") as said:
            opened = source(model, options, options.opaque)
            opened.check_operators(options.quantized != OFF)  # before what takes seconds to import
            from tvm_serenity import firmware

            project = firmware.build(opened.to_build(), target, replace(options, notify=said.step))
    except FitError as error:
        if shown.json:
            show.print_json(error.facts)
        else:
            show.facts(f"{model} {error}", _refused(error.facts))
        raise typer.Exit(1) from None
    _show(model, project, options, shown)


def _show(model: str, project: "Project", options: Settings, shown: ShownBuild) -> None:
    """Print what was built, with its estimate and its kernels where they are asked for."""
    from tvm_serenity.cli import kernel_choices, latency_line

    if shown.json and not shown.why:
        show.print_json(project.facts)
        return
    found = latency_line.estimated(project)
    if shown.json:
        show.print_json({**project.facts, "choices": kernel_choices.priced(project, found)})
        return
    rows_said = {**_built(project), **latency_line.rows(found)}
    output = str(options.output)
    rows_said["next"] = advice(options.format, output, project.metadata["name"])
    show.facts(f"{model} on {project.metadata['board']}: {output}", rows_said)
    if shown.why:
        kernel_choices.show_choices(kernel_choices.priced(project, found), found)


def advice(formats: str, output: str, name: str) -> str:
    """Return what to do next with a project of the form ``formats``."""
    return {
        PROJECT: f"serenity verify {output}",
        "mlf": f"unpack {output}/{name}.tar; include codegen/host/include/tvmgen_{name}.h",
        "zephyr": f"cmake -DZEPHYR_EXTRA_MODULES={Path(output).resolve()}",
        "arduino": f"arduino-cli compile --library {output}",
    }[formats] + ("" if formats == PROJECT else "; serenity verify takes --format project")


def _regions(facts: Mapping[str, Any]) -> dict[str, str]:
    rows = {}
    for line in facts["regions"]:
        short = line["shortfall_bytes"]
        said = f"{line['need_bytes']:,} of {line['size_bytes']:,} bytes ({line['detail']})"
        rows[line["name"]] = said + (f", {short:,} bytes short" if short else "")
    return rows


def _banded(facts: Mapping[str, Any]) -> dict[str, str]:
    """What is said of a network in rows."""
    from tvm_serenity.rows.described import recomputed_text

    bands = facts["rows"]
    if bands is None:
        return {}
    moved = facts["sliding"]
    of = "at these bands" if moved is None else "of a step"
    rows = {
        "arena": f"{bands['arena_bytes']:,} bytes; no order {of} needs less than "
        f"{bands['lower_bound_bytes']:,}"
    }
    if moved is None:
        rows["rows in a band"] = bands["rows"]
    else:
        rows["kept"] = f"{moved['kept_bytes']:,} bytes of it, from one step to the next"
        rows["steps"] = (
            f"of {moved['step']} of {moved['window']} rows; the first window is full after "
            f"{moved['steps_to_fill']}"
        )
    rows["tables"] = f"{bands['table_bytes']:,} bytes for {facts['steps']:,} calls"
    if bands["recompute"] is not None:
        rows["computed again"] = recomputed_text(bands["recompute"])
    if bands["left_whole"]:
        rows["left whole"] = "; ".join(bands["left_whole"])
    return rows


def _tried(facts: Mapping[str, Any]) -> dict[str, str]:
    """In which ways it was tried, where it does not fit as it is."""
    from tvm_serenity.firmware.fit import Way

    ways = [Way(**way).text() for way in facts["tried"]]
    return {"tried": "; ".join(ways)} if ways else {}


def _refused(facts: Mapping[str, Any]) -> dict[str, str]:
    rows = {**_regions(facts), **_banded(facts), **_tried(facts)}
    if facts["arena_limit_bytes"] is not None:
        arena = sum(facts["arena_bytes"].values())
        rows["limit"] = f"{arena:,} bytes of arena, {facts['arena_limit_bytes']:,} allowed"
    rows["alive at the peak"] = ", ".join(
        f"{r['name']} {r['size_bytes']:,}" for r in facts["peak"][:8]
    )
    rows["boards that do"] = ", ".join(facts["boards"]) or "none that is known"
    return rows


def _built(project: "Project") -> dict[str, str]:
    from tvm_serenity.firmware import image
    from tvm_serenity.firmware.toolchain import PACKAGES

    facts = project.facts
    rows = {**_regions(facts), **_banded(facts), **_tried(facts)}
    rows["kernels"] = f"{facts['kernels']}, called in {facts['steps']:,} steps"
    if facts["kept_float"]:
        rows["stays float"] = "; ".join(facts["kept_float"])
    if fewer := said_of_channels(facts["channels"]):
        rows["channels"] = fewer
    if not image.linkable():
        rows["not compiled"] = f"apt-get install {PACKAGES['arm-none-eabi-gcc']}"
    rows["checked"] = facts["check"]["text"]
    return rows
