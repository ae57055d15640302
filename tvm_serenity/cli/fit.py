"""``serenity fit``: the best build of a model for a board, chosen from all there are."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from tvm_serenity.boards import board
from tvm_serenity.cli import app, show
from tvm_serenity.cli.models import part, source
from tvm_serenity.cli.options import Dims, Json, Opaque, Recompute, Signature, sized
from tvm_serenity.cli.quantized import Channels, DynamicRange
from tvm_serenity.errors import InputError
from tvm_serenity.firmware.choices import STACK_BYTES
from tvm_serenity.plots import check_plot
from tvm_serenity.quantize.choices import FOLD, OFF

if TYPE_CHECKING:
    from tvm_serenity.fitting.choose import Fitted
    from tvm_serenity.fitting.measure import BuildFigures

BOARD = "mps2-an386"
"""What is measured where no board is named: a Cortex-M4 with as much memory as it takes."""

PAIR_SECONDS = 60.0
"""Of a sweep, for each pair."""
SEARCHES = 12
"""Searches for an order or a placement that the time of a pair holds, in a sweep."""


@app.command("fit")
def fit_command(
    models: Annotated[
        list[str], typer.Argument(metavar="MODEL...", help="Files, or zoo:NAME?param=value.")
    ],
    board_name: Annotated[
        str, typer.Option("--board", metavar="NAME", help="A known board, or a .toml file.")
    ] = BOARD,
    boards: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="A sweep: NAME,NAME,..., or all that are known."),
    ] = None,
    ram: Annotated[int | None, sized("RAM in all, stack included.", "--ram", least=1)] = None,
    flash: Annotated[int | None, sized("Flash in all, code included.", "--flash", least=1)] = None,
    ms: Annotated[
        float | None, typer.Option("--ms", metavar="MS", help="Milliseconds of one run, at most.")
    ] = None,
    minimise: Annotated[
        str, typer.Option(metavar="time|ram|flash", help="What the best build has least of.")
    ] = "time",
    stream_input: Annotated[
        str,
        typer.Option(
            "--stream-input",
            metavar="yes|no|either",
            help="Whether input rows arrive one by one: another way to call the network.",
        ),
    ] = "no",
    recompute: Recompute = None,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="DIR", help="Build what is chosen, here."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Prefix of the C names. [default: the file's name]")
    ] = None,
    quantized: Annotated[
        str, typer.Option(help="auto: integer kernels where the model is quantised; off: float.")
    ] = "auto",
    dynamic_range: DynamicRange = "litert",
    channels: Channels = FOLD,
    stack: Annotated[int, sized("Stack to keep free.")] = STACK_BYTES,
    force: Annotated[bool, typer.Option("--force", help="Replace what DIR holds.")] = False,
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Do not compare what is built with the model.")
    ] = False,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw RAM and time (.svg .png .pdf).")
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            metavar="SECONDS",
            help="For the whole search; in a sweep, for a pair (there: 60).",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(metavar="N", help="Programs linked or run at a time.")] = 2,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A sweep's Dask scheduler, tcp://HOST:PORT."),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Keep a sweep's finished models here; skip those."),
    ] = None,
    dim: Dims = None,
    signature: Signature = None,
    opaque: Opaque = None,
    json: Json = False,
) -> None:
    """Find the best build of MODEL for a board: whole, written over, or by rows.

    Every way to build it is ordered and placed; those that may be worth it are linked, and one
    run of each is timed as serenity latency does it, or counted. The table marks the choice and,
    with a *, what no other build beats in RAM, flash and time. All of them compute the same.
    "bound" holds for the arena of every order, placement and band height. Ctrl-C keeps the best
    so far. Exit status 1 when no build keeps within the limits.

    [dim]Examples[/dim]
      serenity fit vww.tflite --board nucleo-l4r5zi -o vww
      serenity fit vww.tflite --ram 16K --stream-input either --minimise ram
      serenity fit *.tflite --boards microbit,netduinoplus2 --resume fits.points

    Several models or --boards: a sweep of all pairs, each in a process of its own. Of each the
    least that makes it fit is shown: whole, by rows, or by what else there is (fit).
    """
    from tvm_serenity.firmware.emit.project import check_target
    from tvm_serenity.firmware.settings import Settings
    from tvm_serenity.fitting.goal import FitGoal

    check_plot(plot)
    goal = FitGoal(
        minimise=minimise,
        ram_bytes=ram,
        flash_bytes=flash,
        milliseconds=ms,
        stream_input=stream_input,
        recompute=recompute,
        seconds=time_limit,
        jobs=jobs,
    )
    several = len(models) > 1 or boards is not None
    _check_sweep(
        several,
        {
            "--ram": ram,
            "--flash": flash,
            "--ms": ms,
            "--recompute": recompute,
            "-o": output,
            "--name": name,
            "--plot": plot,
        },
        {"--dask": dask, "--resume": resume},
    )
    opened = source(models[0], part(dim, signature), opaque or ())
    settings = Settings(
        name=name,
        dims=opened.dims,
        signature=signature,
        opaque=opened.opaque,
        quantized=quantized,
        dynamic_range=dynamic_range,
        channels=channels,
        stack_bytes=stack,
        output=output,
        force=force,
        check=not no_check,
    )
    if several:
        from tvm_serenity.cli.fit_sweep import boards_named, print_fits, sweep_fits

        names = [board_name] if boards is None else boards_named(boards)
        show.warn_without_core()
        seconds = PAIR_SECONDS if time_limit is None else time_limit
        settings = replace(settings, time_limit_s=seconds / SEARCHES)
        goal = replace(goal, seconds=seconds)
        print_fits(sweep_fits(models, names, settings, goal, (dask, resume)), json)
        return
    model, target = models[0], board(board_name)
    goal.check(target)
    if output is not None:
        check_target(Path(output), force)
    opened.check_operators(quantized != OFF)  # before what takes seconds to import
    from tvm_serenity.fitting.described import described
    from tvm_serenity.fitting.search import build_chosen, fitted

    show.warn_without_core()
    with show.progress(f"fitting {model}") as said:
        settings = replace(settings, notify=said.step)
        found = fitted(model, target, goal, settings)
        if output is not None and found.chosen is not None:
            build_chosen(found, settings)
    if plot is not None:
        from tvm_serenity.fitting.figure import plot_front

        plot_front(Path(model).name, found, plot)
    if json:
        written = output if found.chosen is not None else None
        show.print_json({**described(found), "model": model, "output": written})
    else:
        _print(model, found, output)
    if found.chosen is None:
        raise typer.Exit(1)


def _check_sweep(
    several: bool, alone: Mapping[str, object], sweeping: Mapping[str, object]
) -> None:
    """Raise :class:`InputError` where an option goes with one model alone, or with a sweep."""
    for option, value in (alone if several else sweeping).items():
        if value is not None:
            what = "one model and one board" if several else "--boards or several models"
            raise InputError(f"{option} goes with {what}")


def _print(model: str, found: "Fitted", output: str | None) -> None:
    from tvm_serenity.fitting.described import boards

    table = Table(box=None, title=escape(f"{model} on {found.board.name}"), title_justify="left")
    for column in ("", "build", "arena", "RAM", "flash", "one run"):
        table.add_column(column, justify="left" if column in ("", "build") else "right")
    for one in sorted(found.points, key=lambda one: -one.arena_bytes):
        mark = ">" if one is found.chosen else "*" if one in found.front else ""
        code = "" if one.linked else " + code"
        sizes = f"{one.arena_bytes:,}", f"{one.ram_bytes:,}", f"{one.flash_bytes:,}{code}"
        table.add_row(mark, escape(one.how), *sizes, escape(_run(one)))
    show.console.print(table)
    rows = {}
    if found.chosen is None:
        rows["no build fits"] = _shortage(found)
    elif output is not None:
        rows["written"] = f"{output} ({found.chosen.how}); serenity verify {output}"
    else:
        rows["best"] = f"{found.chosen.how}, least {found.goal.minimise}"
    if found.lower_bound_bytes:
        least = min(one.arena_bytes for one in found.points)
        gap = least / found.lower_bound_bytes - 1
        rows["bound"] = (
            f"no order, placement or bands need an arena below {found.lower_bound_bytes:,} bytes; "
            f"the least here is {gap:.1%} above"
        )
    if found.left_out:
        rows["not by rows"] = "; ".join(found.left_out)
    rows["boards that do"] = ", ".join(boards(found)) or "none that is known"
    if not found.complete:
        rows["not finished"] = "the time was over, or the search interrupted: the best so far"
    rows["search"] = f"{found.seconds:.1f} s"
    show.facts("", rows)


def _run(one: "BuildFigures") -> str:
    if one.run is None:
        return f"({one.untimed})" if one.untimed else ""
    if one.run.milliseconds is not None:
        low, high = one.run.milliseconds
        return f"{low:.3g} to {high:.3g} ms"
    return f"{one.run.least:,} {one.run.unit}"


def _shortage(found: "Fitted") -> str:
    """What stands in the way of the build that needs least RAM."""
    least = min(found.points, key=lambda one: (one.ram_bytes, one.flash_bytes))
    short = [
        f"{line.region} is {line.shortfall_bytes:,} bytes short"
        for line in least.taken.lines
        if line.shortfall_bytes
    ]
    return f"{least.how}: " + ("; ".join(short) or "it is beyond the limits that were given")
