"""``serenity build``: write a firmware project for a model and check that it fits its board."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from tvm_serenity.cli import show
from tvm_serenity.cli.channels import channels_text
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.options import Board, Model
from tvm_serenity.cli.projects import advice, regions
from tvm_serenity.commands.build import BuildOptions, build, pinned
from tvm_serenity.errors import FitError
from tvm_serenity.options.option import Option, option
from tvm_serenity.options.output import Shown
from tvm_serenity.system.times import milliseconds_text

if TYPE_CHECKING:
    from tvm_serenity.firmware.result import Project


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
def build_command(
    model: Model, board: Board = None, *, options: BuildOptions, shown: ShownBuild
) -> None:
    """Write the best firmware for MODEL as C sources, and check that it fits the board.

    The firmware needs no runtime library and no malloc. DIR receives the C interface
    (NAME_model.h and NAME_model.c), kernels, weights, a linker script that enforces the memory
    sizes, an example, a test harness, Makefile and CMakeLists.txt. Before DIR is written, the
    project is linked, measured and compared with the reference in a temporary folder.

    By default build takes the fastest firmware that fits the board. It searches the order of the
    operators, in-place kernels and overlap, rewriting, workspace upgrades, constants in RAM, and
    bands of rows. --minimise, --ram, --flash and --deadline change the goal, and other options fix
    the choices that they name; serenity fit prints all candidates. If none fits, nothing is written
    and the exit status is 1.

    [dim]Examples[/dim]
      serenity build kws.tflite --board netduinoplus2 -o kws
      serenity build person.tflite --board microbit --minimise ram -o person
      serenity build kws.tflite --cpu cortex-m4 --ram 64K --flash 512K -o kws
    """
    show.warn_without_core()
    try:
        project = build(model, board, options, show.progress)
    except FitError as error:
        if shown.json:
            show.print_json({**error.facts, "search": None})
        else:
            show.facts(f"{model} {error}", _refused(error.facts))
        raise typer.Exit(1) from None
    _show(model, project, options, shown)


def _show(model: str, project: "Project", options: BuildOptions, shown: ShownBuild) -> None:
    """Print the build and its estimated latency; with ``why`` also its kernels."""
    from tvm_serenity.cli import kernel_choices, latency_line

    if shown.json and not shown.why:
        show.print_json(project.facts)
        return
    estimate = latency_line.estimated(project)
    if shown.json:
        show.print_json({**project.facts, "choices": kernel_choices.priced(project, estimate)})
        return
    output = str(options.output)
    rows = {**_search(project, model, options), **_built(project), **latency_line.rows(estimate)}
    rows["next"] = advice(options.format, output, project.metadata["name"])
    show.facts(f"{model} on {project.metadata['board']}: {output}", rows)
    if shown.why:
        kernel_choices.show_choices(kernel_choices.priced(project, estimate), estimate)


def _search(project: "Project", model: str, options: BuildOptions) -> dict[str, str]:
    """Return the chosen build with its cost, the alternatives, and the command that repeats it."""
    search = project.facts["search"]
    if search is None:
        return {}
    others = "; ".join(map(_cost, search["alternatives"]))
    rows = {
        f"least {search['minimise']}": _cost(search["build"]),
        "alternatives": others or "no tried build is faster or smaller",
        "same build": pinned(project, model, options),
    }
    if not search["complete"]:
        rows["unfinished"] = "time limit: the best so far"
    return rows


def _cost(one: Mapping[str, Any]) -> str:
    """Return a build in words, with its time, RAM and flash."""
    time = ""
    if one["milliseconds"] is not None:
        time = f"{milliseconds_text(one['milliseconds'][1])} ms, "
    elif one["instructions"] is not None:
        time = f"{one['instructions']:,} instructions, "
    return f"{one['strategy']}: {time}{one['ram_bytes']:,} bytes RAM, {one['flash_bytes']:,} flash"


def _banded(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts of a network in rows or steps; none of a network that runs unsplit."""
    from tvm_serenity.rows.described import recomputed_text

    bands, window = facts["rows"], facts["sliding"]
    if bands is None and window is not None:
        return {"states": f"{window['kept_bytes']:,} bytes of the arena, updated in place"}
    if bands is None:
        return {}
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
    if bands["left_unsplit"]:
        rows["unsplit"] = "; ".join(bands["left_unsplit"])
    return rows


def _as_data(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the cost of a model as data, beside a project of the model; none of other formats."""
    known = facts["blob"]
    if known is None:
        return {}
    new = len(known["new_kernels"])
    rows = {
        "blob": f"{known['blob_bytes']:,} bytes with {known['constant_bytes']:,} of constants"
        + f"; outputs as the project's on {known['compared_inputs']} inputs"
        * bool(known["compared_inputs"]),
        "kernel set": f"{known['kernel_set']} kernels, {new} of them new; the model uses "
        f"{known['kernels']}",
    }
    if known["set_code_bytes"] is not None:
        rows["set code"] = (
            f"{known['set_code_bytes']:,} bytes with the loader; the code of the project takes "
            f"{known['project_code_bytes']:,}"
        )
    if known["instructions"] is not None:
        more = 100 * (known["instructions"] / known["project_instructions"] - 1)
        rows["time"] = (
            f"{known['instructions']:,} instructions in QEMU, {more:.2f} % more than the project"
        )
    return rows


def _streamed(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the transfers of a network that is streamed through fast memory; none of others."""
    found = facts["transfers"]
    if found is None:
        return {}
    moved = f", {found['moved_bytes']:,} moved within {found['fast']}" * (found["moved_bytes"] > 0)
    return {
        "transfers": f"{found['total_bytes']:,} bytes between {found['slow']} and {found['fast']}: "
        f"{found['read_bytes']:,} read ({found['prefetched_bytes']:,} of them while another "
        f"operator computes), {found['write_bytes']:,} written; {found['direct_bytes']:,} of them "
        f"by operators in {found['slow']}, the others are copied{moved}; no order and no "
        f"policy moves less than {found['lower_bound_bytes']:,}"
    }


def _tried(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the fallback strategies that were tried; none if the network fits unsplit."""
    from tvm_serenity.firmware.board.fit import Attempt

    ways = [Attempt(**way).text() for way in facts["tried"]]
    return {"tried": "; ".join(ways)} if ways else {}


def _refused(facts: Mapping[str, Any]) -> dict[str, str]:
    rows = {**regions(facts), **_banded(facts), **_tried(facts)}
    if facts["arena_limit_bytes"] is not None:
        arena = sum(facts["arena_bytes"].values())
        rows["limit"] = f"an arena of {facts['arena_limit_bytes']:,} bytes; it needs {arena:,}"
    rows["live at the peak"] = ", ".join(
        f"{r['name']} {r['size_bytes']:,}" for r in facts["peak"][:8]
    )
    if any(line["shortfall_bytes"] for line in facts["regions"]):
        rows["boards that fit"] = ", ".join(facts["boards"]) or "no known board"
    if facts["stream_from"] is not None:
        rows["this board"] = f"--fast-memory SIZE keeps tensors in {facts['stream_from']} as well"
    return rows


def _built(project: "Project") -> dict[str, str]:
    from tvm_serenity.architectures import architecture
    from tvm_serenity.firmware.board import image
    from tvm_serenity.firmware.board.toolchain import PACKAGES

    facts = project.facts
    rows = {**regions(facts), **_streamed(facts), **_banded(facts), **_tried(facts)}
    rows["kernels"] = f"{facts['kernels']}, called in {facts['steps']:,} steps"
    rows |= _as_data(facts)
    if facts["kept_float"]:
        rows["float kernels"] = "; ".join(facts["kept_float"])
    if skipped := channels_text(facts["channels"]):
        rows["channels"] = skipped
    family = project.metadata["architecture"]
    known = architecture(family).known_toolchain
    if known is None:
        rows["not compiled"] = f"no compiler is known for {architecture(family).title}"
    elif not image.linkable(family):
        rows["not compiled"] = f"apt-get install {PACKAGES[known.compiler]}"
    rows["checks"] = facts["check"]["text"]
    return rows
