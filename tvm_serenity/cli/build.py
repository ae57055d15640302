"""``serenity build``: from a model file to a firmware project that fits its board."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from tvm_serenity.boards import board
from tvm_serenity.cli import app, show
from tvm_serenity.cli.build_rows import AUTO, OFF, BuildRam, Request, Rows, build_rows, requested
from tvm_serenity.cli.checking import NoCheck, Report, host_build, loose, why_not
from tvm_serenity.cli.models import source
from tvm_serenity.cli.rows import StreamInput
from tvm_serenity.cli.schedule import Dims, InPlace, Json, Model, TimeLimit
from tvm_serenity.errors import InputError
from tvm_serenity.firmware.emit.project import (
    Files,
    Layout,
    check_target,
    metadata_json,
    project,
    write_project,
)
from tvm_serenity.firmware.emit.trial import trial_source
from tvm_serenity.firmware.fit import Fit, boards_that_do, fit
from tvm_serenity.firmware.formats import FORMATS, files
from tvm_serenity.firmware.memory import STACK_BYTES, rooms
from tvm_serenity.firmware.names import identifier
from tvm_serenity.firmware.rehearsal import rehearse
from tvm_serenity.firmware.toolchain import PACKAGES, have, make
from tvm_serenity.firmware.verify import ULP_LIMIT, ULP_LIMIT_LLVM
from tvm_serenity.schedule import Options

if TYPE_CHECKING:
    from tvm_serenity.firmware.tir.program import Compiled

CODEGENS = ("c", "llvm")
ORDERS = ("best", "given")
QUANTIZED = ("auto", "off")


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
    rewrite: Annotated[
        bool, typer.Option("--rewrite", help="Rewrite subgraphs for a lower peak first.")
    ] = False,
    in_place: InPlace = False,
    order: Annotated[str, typer.Option(help="best, or given: the model's own order.")] = "best",
    arena_limit: Annotated[
        int | None, typer.Option(metavar="BYTES", help="Refuse an arena above this.")
    ] = None,
    stack: Annotated[int, typer.Option(metavar="BYTES", help="Stack to keep free.")] = STACK_BYTES,
    external_arena: Annotated[
        bool, typer.Option("--external-arena", help="The caller passes the arena: re-entrant.")
    ] = False,
    rows: Rows = OFF,
    ram: BuildRam = None,
    stream_input: StreamInput = False,
    formats: Annotated[str, typer.Option("--format", help=", ".join(FORMATS))] = "project",
    force: Annotated[bool, typer.Option("--force", help="Replace what DIR holds.")] = False,
    no_check: NoCheck = False,
    dim: Dims = None,
    time_limit: TimeLimit = None,
    json: Json = False,
) -> None:
    """Build firmware for MODEL: quantise, order, plan, write C, and check that it fits the board.

    Without a runtime and without malloc: DIR receives model.h and model.c (the C interface),
    kernels.c, weights.c, a linker script that refuses what does not fit, an example, a harness,
    Makefile and CMakeLists.txt. Exit status 1, and nothing is written, when it does not fit.

        serenity build kws.tflite --board netduinoplus2 -o kws && serenity verify kws
        serenity build person.tflite --board microbit --rows auto -o person
    """
    _check_choices(codegen, order, quantized, formats, stack)
    if external_arena and formats in ("mlf", "arduino"):
        raise InputError(f"--format {formats} has its own arena; leave out --external-arena")
    target = board(board_name)
    whole_only = {
        "--format": formats != "project",
        "--external-arena": external_arena,
        "--codegen llvm": codegen != "c",
        "--order given": order != "best",
        "--quantized off": quantized != "auto",
        "--rewrite": rewrite,
        "--in-place": in_place,
    }
    request = Request(
        model,
        target,
        identifier(name or Path(model.removeprefix("zoo:").partition("?")[0]).stem),
        no_check,
        rows,
        stream_input,
        requested(rows, ram, stream_input, stack),
        arena_limit,
        stack,
        tuple(option for option, given in whole_only.items() if given),
        time_limit or 10.0,
        notify,
    )
    if request.only_rows:
        request.check_options()
    check_target(Path(output), force)
    module = source(model, dim or ()).module()
    show.warn_without_core()
    from tvm_serenity.firmware.tir.program import compiled
    from tvm_serenity.firmware.tir.settings import Settings

    settings = Settings(
        order=order,
        quantized=quantized,
        rewrite="all" if rewrite else "",
        in_place=in_place,
        codegen=codegen,
        alignment_bytes=target.core.alignment_bytes,
        options=Options(time_limit_s=time_limit),
        notify=notify,
    )
    if request.only_rows:
        build_rows(module, request, output, force=force, json=json)
        return
    apart = loose(module, quantized)
    made = compiled(module, request.name, target, rooms(target, stack), settings)
    if rows == AUTO and not (made.placed.fits and request.allows(made.placed.arena_bytes)):
        request.check_options()
        build_rows(module, request, output, force=force, json=json)
        return
    found = fit(target, made.placed, made.program.constant_bytes, stack)
    too_large = arena_limit is not None and sum(made.placed.arena_bytes.values()) > arena_limit
    result = _json(model, made, found, arena_limit)
    if not found.fits or not made.placed.fits or too_large:
        result["boards"] = list(
            boards_that_do(
                sum(made.placed.arena_bytes.values()), made.program.constant_bytes, stack
            )
        )
        if json:
            show.print_json(result)
        else:
            _refuse(result, made, found, arena_limit)
        raise typer.Exit(1)
    how = Written(model, output, formats, force, no_check, apart)
    result["check"] = _write(made, Layout(target, stack, external_arena), how)
    if json:
        show.print_json(result)
    else:
        _print(model, output, result, found, advice(formats, output, request.name))


def notify(text: str) -> None:
    """Say on standard error what is being done."""
    terminal = Console(stderr=True)
    if terminal.is_terminal:
        terminal.print(f"[dim]{escape(text)}[/]")
    else:
        print(f"serenity: {text}", file=sys.stderr, flush=True)


def advice(formats: str, output: str, name: str) -> str:
    """Return what to do next with a project of the form ``formats``."""
    return {
        "project": f"serenity verify {output}",
        "mlf": f"unpack {output}/{name}.tar; include codegen/host/include/tvmgen_{name}.h",
        "zephyr": f"cmake -DZEPHYR_EXTRA_MODULES={Path(output).resolve()}",
        "arduino": f"arduino-cli compile --library {output}",
    }[formats] + ("" if formats == "project" else "; serenity verify takes --format project")


def _check_choices(codegen: str, order: str, quantized: str, formats: str, stack: int) -> None:
    for option, value, allowed in (
        ("--codegen", codegen, CODEGENS),
        ("--order", order, ORDERS),
        ("--quantized", quantized, QUANTIZED),
        ("--format", formats, FORMATS),
    ):
        if value not in allowed:
            raise InputError(f"{option} {value!r}: there are {', '.join(allowed)}")
    if not 0 <= stack < 2**31:
        raise InputError(f"--stack {stack}: bytes from 0 on")


@dataclass(frozen=True)
class Written:
    """What is written of ``model`` where, and whether it is compared before."""

    model: str
    output: str
    formats: str
    force: bool
    no_check: bool
    loose: str


def _write(made: "Compiled", layout: Layout, how: Written) -> dict[str, Any]:
    """Compare and write a program; return what JSON says of the comparison."""
    from tvm_serenity.firmware.program import check
    from tvm_serenity.firmware.verify import REFERENCE, packed

    check(made.program)
    about = {"model": Path(how.model).name, "kept_float": list(made.kept_float)}
    about["loose"] = how.loose
    layout = replace(layout, metadata=about)
    texts = project(made.program, layout)
    report, reference = _checked(made, texts, how, layout.external_arena)
    layout = replace(layout, metadata={**about, "check": report.json()})
    if how.formats == "project":
        contents = {**texts, "metadata.json": metadata_json(made.program, layout)}
        contents[REFERENCE] = packed(reference)
    else:
        contents = files(made.program, layout, how.formats)

    def prepare(directory: Path) -> None:
        if how.formats == "project" and have("make", "arm-none-eabi-gcc"):
            notify("compiling")
            make(directory, "all")

    write_project(contents, how.output, how.force, prepare)
    return {**report.json(), "text": report.text()}


def _checked(
    made: "Compiled", texts: Files, how: Written, external_arena: bool
) -> tuple[Report, dict[str, Any]]:
    """Compare kernels and the whole network; return how, and what every tensor must be.

    ``texts`` are the files of the project.
    """
    from tvm_serenity.firmware.tir.reference import reference
    from tvm_serenity.firmware.tir.translation import cases, host_object, validate

    skipped = why_not(how.no_check)
    if skipped:
        notify("computing the reference")
        whole_only = how.formats == "project"
        return Report(skipped=skipped), reference(made, 0, how.model) if whole_only else {}
    texts = {**texts, "trial.c": trial_source(made.program, external_arena).encode()}
    with host_build(texts, host_object(made)) as started:
        notify("comparing kernels with TVM's")
        limit = ULP_LIMIT_LLVM if made.program.objects else ULP_LIMIT
        folder = Path(how.output).parent
        counted = validate(cases(made), made.executable, started, limit_ulp=limit, folder=folder)
        notify("computing the reference")
        expected = reference(made, 0, how.model)
        notify("comparing the whole network")
        found = rehearse(started.library, texts, expected)
    return Report(counted.kernels, counted.sets, found, how.loose), expected


def _json(model: str, made: "Compiled", found: Fit, arena_limit: int | None) -> dict[str, Any]:
    return {
        "model": model,
        "board": found.board,
        "fits": found.fits and made.placed.fits,
        "arena_bytes": dict(made.placed.arena_bytes),
        "arena_limit_bytes": arena_limit,
        "peak_bytes": made.peak_bytes,
        "lower_bound_bytes": made.lower_bound_bytes,
        "constant_bytes": made.program.constant_bytes,
        "steps": len(made.program.steps),
        "kernels": len(made.program.kernels),
        "kept_float": list(made.kept_float),
        "regions": [
            {
                "name": line.region,
                "kind": line.kind,
                "need_bytes": line.need_bytes,
                "size_bytes": line.size_bytes,
                "shortfall_bytes": line.shortfall_bytes,
            }
            for line in found.lines
        ],
        "peak": [{"name": r.name, "size_bytes": r.size_bytes} for r in found.peak],
        "boards": [],
    }


def _regions(found: Fit) -> dict[str, str]:
    rows = {}
    for line in found.lines:
        short = f", {line.shortfall_bytes:,} bytes short" if line.shortfall_bytes else ""
        rows[line.region] = (
            f"{line.need_bytes:,} of {line.size_bytes:,} bytes ({line.detail}){short}"
        )
    return rows


def _refuse(result: dict[str, Any], made: "Compiled", found: Fit, arena_limit: int | None) -> None:
    rows = _regions(found)
    if arena_limit is not None:
        arena = sum(made.placed.arena_bytes.values())
        rows["--arena-limit"] = f"{arena:,} bytes of arena, {arena_limit:,} allowed"
    rows["alive at the peak"] = ", ".join(
        f"{r['name']} {r['size_bytes']:,}" for r in result["peak"][:8]
    )
    rows["boards that do"] = ", ".join(result["boards"]) or "none that is known"
    show.facts(f"{result['model']} does not fit {found.board}", rows)


def _print(model: str, output: str, result: dict[str, Any], found: Fit, then: str) -> None:
    rows = _regions(found)
    rows["kernels"] = f"{result['kernels']}, called in {result['steps']} steps"
    if result["kept_float"]:
        rows["stays float"] = "; ".join(result["kept_float"])
    if not have("make", "arm-none-eabi-gcc"):
        rows["not compiled"] = f"apt-get install {PACKAGES['arm-none-eabi-gcc']}"
    rows["checked"] = result["check"]["text"]
    rows["next"] = then
    show.facts(f"{model} on {found.board}: {output}", rows)
