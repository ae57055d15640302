"""``serenity fit``: search all builds of a model for the best one for a board."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.fit_sweep import print_fits
from tvm_serenity.cli.options import Board
from tvm_serenity.commands.fit import FitOptions, FitResult, fit
from tvm_serenity.options.output import Shown
from tvm_serenity.system.times import range_text

if TYPE_CHECKING:
    from tvm_serenity.fitting.choose import Fitted
    from tvm_serenity.fitting.measure import BuildFigures

Models = Annotated[
    list[str], typer.Argument(metavar="MODEL...", help="Files, or zoo:NAME?param=value.")
]


@command("fit")
def fit_command(models: Models, board: Board = None, *, options: FitOptions, shown: Shown) -> None:
    """Find the best build of MODEL for a board: unsplit, with overlap, or in bands of rows.

    All builds are ordered and placed. Builds that no other dominates are linked, and the latency
    of one run is estimated as serenity latency does, or its instructions are counted. All builds
    compute the same outputs. In the table, > marks the chosen build and * a build that no other
    beats in RAM, flash and time. "bound" is a lower bound of the arena for every order, placement
    and band height. Ctrl-C keeps the best so far. Exit status 1 if no build keeps the limits.

    [dim]Examples[/dim]
      serenity fit vww.tflite --board nucleo-l4r5zi -o vww
      serenity fit vww.tflite --ram 16K --stream-input either --minimise ram
      serenity fit *.tflite --boards microbit,netduinoplus2 --resume fits.points

    With several models or --boards, fit tests each pair of a model and a board in a process of its
    own. It prints the first strategy that fits: the unsplit network, bands of rows, or the full
    search ("fit").
    """
    show.warn_without_core()
    result = fit(models, board, options, show.progress)
    if not isinstance(result, FitResult):
        print_fits(result, shown.json)
        return
    if shown.json:
        show.print_json(result.json())
    else:
        _print(result.model, result.fitted, result.output)
    if result.fitted.chosen is None:
        raise typer.Exit(1)


def _print(model: str, fitted: "Fitted", output: str | None) -> None:
    from tvm_serenity.fitting.described import boards

    table = Table(box=None, title=escape(f"{model} on {fitted.board.name}"), title_justify="left")
    for column in ("", "build", "arena", "RAM", "flash", "one run"):
        table.add_column(column, justify="left" if column in ("", "build") else "right")
    for one in sorted(fitted.points, key=lambda one: -one.arena_bytes):
        mark = ">" if one is fitted.chosen else "*" if one in fitted.front else ""
        code = "" if one.linked else " + code"
        sizes = f"{one.arena_bytes:,}", f"{one.ram_bytes:,}", f"{one.flash_bytes:,}{code}"
        table.add_row(mark, escape(one.strategy), *sizes, escape(_run(one)))
    show.console.print(table)
    rows = {}
    if fitted.chosen is None:
        rows["no build fits"] = _shortage(fitted)
    elif output is not None:
        rows["written"] = f"{output} ({fitted.chosen.strategy}); serenity verify {output}"
    else:
        rows["best"] = f"{fitted.chosen.strategy}: least {fitted.goal.minimise}"
    if fitted.lower_bound_bytes:
        smallest = min(one.arena_bytes for one in fitted.points)
        gap = smallest / fitted.lower_bound_bytes - 1
        rows["bound"] = (
            f"no order, placement or bands need less than {fitted.lower_bound_bytes:,} bytes "
            f"of arena; the smallest arena here is {gap:.1%} above"
        )
    if fitted.left_out:
        rows["no bands of rows"] = "; ".join(fitted.left_out)
    rows["boards that fit"] = ", ".join(boards(fitted)) or "no known board"
    if not fitted.complete:
        rows["unfinished"] = "time limit or Ctrl-C: the best so far"
    rows["search"] = f"{fitted.seconds:.1f} s"
    show.facts("", rows)


def _run(one: "BuildFigures") -> str:
    if one.run is None:
        return f"({one.untimed})" if one.untimed else ""
    if one.run.milliseconds is not None:
        return f"{range_text(*one.run.milliseconds)} ms"
    return f"{one.run.least:,} {one.run.unit}"


def _shortage(fitted: "Fitted") -> str:
    """Return the missing bytes of the build that needs the least RAM."""
    least = min(fitted.points, key=lambda one: (one.ram_bytes, one.flash_bytes))
    short = [
        f"{line.region} is {line.shortfall_bytes:,} bytes short"
        for line in least.taken.lines
        if line.shortfall_bytes
    ]
    return f"{least.strategy}: " + ("; ".join(short) or "it exceeds the given limits")
