"""``serenity build``: from a model file to a firmware project that fits its board."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tvm_serenity.boards import board
from tvm_serenity.cli import app, show
from tvm_serenity.cli.models import part, source
from tvm_serenity.cli.options import (
    Dims,
    InPlace,
    Json,
    Model,
    Opaque,
    Recompute,
    Signature,
    Sliding,
    StreamInput,
    TimeLimit,
    WriteOver,
    sized,
)
from tvm_serenity.cli.quantized import Channels, DynamicRange, said_of_channels
from tvm_serenity.errors import FitError
from tvm_serenity.firmware.choices import FLASH, FORMATS, NEEDED, PROJECT, STACK_BYTES
from tvm_serenity.quantize.choices import FOLD, OFF

if TYPE_CHECKING:
    from tvm_serenity.firmware.result import Project

Rows = Annotated[
    str,
    typer.Option(
        "--rows",
        metavar="N|auto|needed|off",
        help="Run in bands of N rows; auto: the coarsest that fit, if it does not fit whole; "
        "needed: then first in place, rewritten, over; off: whole.",
    ),
]
Fast = Annotated[
    bool, typer.Option("--fast", help="Take faster kernels whose workspace needs a larger arena.")
]
Constants = Annotated[
    str,
    typer.Option(
        "--constants",
        metavar="flash|ram",
        help="ram: copied there at start, for boards whose flash is slower than the core.",
    ),
]
BuildRam = Annotated[int | None, sized("RAM in all, stack included.", "--ram")]
NoCheck = Annotated[
    bool, typer.Option("--no-check", help="Do not compare what is built with TVM and the model.")
]


@app.command("build")
def build_command(
    model: Model,
    board_name: Annotated[
        str, typer.Option("--board", metavar="NAME", help="A known board, or a .toml file.")
    ],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="DIR", help="Write the project here.")
    ],
    name: Annotated[
        str | None, typer.Option(help="Prefix of the C names. [default: the file's name]")
    ] = None,
    codegen: Annotated[str, typer.Option(help="Kernels as C sources, or compiled by llvm.")] = "c",
    quantized: Annotated[
        str, typer.Option(help="auto: integer kernels where the model is quantised; off: float.")
    ] = "auto",
    dynamic_range: DynamicRange = "litert",
    channels: Channels = FOLD,
    rewrite: Annotated[
        bool, typer.Option("--rewrite", help="Rewrite subgraphs for a lower peak first.")
    ] = False,
    in_place: InPlace = False,
    write_over: WriteOver = False,
    fast: Fast = False,
    constants: Constants = FLASH,
    order: Annotated[str, typer.Option(help="best, or given: the model's own order.")] = "best",
    arena_limit: Annotated[int | None, sized("Refuse an arena above this.")] = None,
    stack: Annotated[int, sized("Stack to keep free.")] = STACK_BYTES,
    external_arena: Annotated[
        bool, typer.Option("--external-arena", help="The caller passes the arena: re-entrant.")
    ] = False,
    rows: Rows = NEEDED,
    ram: BuildRam = None,
    stream_input: StreamInput = False,
    sliding: Sliding = None,
    recompute: Recompute = None,
    formats: Annotated[str, typer.Option("--format", help=", ".join(FORMATS))] = PROJECT,
    force: Annotated[bool, typer.Option("--force", help="Replace what DIR holds.")] = False,
    no_check: NoCheck = False,
    dim: Dims = None,
    signature: Signature = None,
    opaque: Opaque = None,
    time_limit: TimeLimit = None,
    why: Annotated[
        bool,
        typer.Option(
            "--why", help="Say which kernel each operator has, its cycles, and why no other."
        ),
    ] = False,
    json: Json = False,
) -> None:
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
    opened, target = source(model, part(dim, signature), opaque or ()), board(board_name)
    from tvm_serenity.firmware.settings import Settings

    settings = Settings(
        name=name,
        dims=opened.dims,
        signature=signature,
        opaque=opened.opaque,
        rows=rows,
        ram_bytes=ram,
        stream_input=stream_input,
        sliding=sliding,
        recompute=recompute,
        order=order,
        in_place=in_place,
        write_over=write_over,
        fast=fast,
        constants=constants,
        rewrite="all" if rewrite else "",
        quantized=quantized,
        dynamic_range=dynamic_range,
        channels=channels,
        codegen=codegen,
        external_arena=external_arena,
        arena_limit_bytes=arena_limit,
        stack_bytes=stack,
        format=formats,
        output=output,
        force=force,
        check=not no_check,
        time_limit_s=time_limit,
    )
    opened.check_operators(quantized != OFF)  # before what takes seconds to import
    from tvm_serenity.firmware.building import build

    show.warn_without_core()
    try:
        with show.progress(f"building {model}") as said:
            project = build(model, target, replace(settings, notify=said.step))
    except FitError as error:
        if json:
            show.print_json(error.facts)
        else:
            show.facts(f"{model} {error}", _refused(error.facts))
        raise typer.Exit(1) from None
    from tvm_serenity.cli import kernel_choices, latency_line

    if json and not why:
        show.print_json(project.facts)
        return
    found = latency_line.estimated(project)
    if json:
        show.print_json({**project.facts, "choices": kernel_choices.priced(project, found)})
        return
    rows_said = {**_built(project), **latency_line.rows(found)}
    rows_said["next"] = advice(formats, output, project.metadata["name"])
    show.facts(f"{model} on {target.name}: {output}", rows_said)
    if why:
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
