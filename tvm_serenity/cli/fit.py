"""``serenity fit``: the best build of a model for a board, chosen from all there are."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.fit_sweep import print_fits
from tvm_serenity.commands.fit import FitFound, FitOptions, fit
from tvm_serenity.options.output import Shown

if TYPE_CHECKING:
    from tvm_serenity.fitting.choose import Fitted
    from tvm_serenity.fitting.measure import BuildFigures

BOARD = "mps2-an386"
"""What is measured where no board is named: a Cortex-M4 with as much memory as it takes."""

Models = Annotated[
    list[str], typer.Argument(metavar="MODEL...", help="Files, or zoo:NAME?param=value.")
]
Board = Annotated[
    str, typer.Option("--board", metavar="NAME", help="A known board, or a .toml file.")
]


@command("fit")
def fit_command(models: Models, board: Board = BOARD, *, options: FitOptions, shown: Shown) -> None:
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
    show.warn_without_core()
    found = fit(models, board, options, show.progress)
    if not isinstance(found, FitFound):
        print_fits(found, shown.json)
        return
    if shown.json:
        show.print_json(found.json())
    else:
        _print(found.model, found.fitted, found.output)
    if found.fitted.chosen is None:
        raise typer.Exit(1)


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
