"""``serenity fit MODELS --boards ...``: which networks fit which boards, and by what."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from tvm_serenity.boards import board, names
from tvm_serenity.cli import show
from tvm_serenity.cli.sweeping import kept_on_interrupt
from tvm_serenity.errors import InputError
from tvm_serenity.sweeps import Row, run_sweep

if TYPE_CHECKING:
    from tvm_serenity.firmware.settings import Settings
    from tvm_serenity.fitting.goal import FitGoal

ALL = "all"
STEPS = {"whole": "whole", "rows": "rows", "fit": "fit", None: "-"}


def boards_named(text: str) -> list[str]:
    """Return the boards of a list with commas, or all that are known."""
    if text == ALL:
        return list(names())
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def sweep_fits(
    models: list[str],
    boards: list[str],
    settings: "Settings",
    goal: "FitGoal",
    where: tuple[str | None, str | None],
) -> list[Row]:
    """Return a row for each model on each board; ``where``: the Dask scheduler, the file to keep.

    The seconds of ``goal`` are those of each pair.
    """
    from tvm_serenity.fitting.goal import NO, YES
    from tvm_serenity.fitting.sweep import point_file, points

    if goal.stream_input == YES:
        raise InputError("--stream-input yes: a sweep takes no, or either")
    assert goal.seconds is not None
    found = [board(name) for name in boards]
    work = points(models, found, settings, goal.seconds, goal.stream_input != NO)
    dask, resume = where
    keep = point_file(Path(resume or f"fit-{work[0].key()[:8]}.points"))
    run = partial(run_sweep, work, goal.jobs, dask)
    return kept_on_interrupt(run, keep, resume is not None)


def print_fits(rows: list[Row], json: bool) -> None:
    """Print what a sweep found: models down, boards across, then the counts."""
    from tvm_serenity.fitting.sweep import counts

    counted = counts(rows)
    if json:
        show.print_json({"pairs": rows, "counts": {"pairs": len(rows), **counted}})
        return
    boards = list(dict.fromkeys(row["board"] for row in rows))
    table = Table(box=None)
    table.add_column("model")
    for name in boards:
        table.add_column(name)
    by = {(row["model"], row["board"]): row for row in rows}
    for model in dict.fromkeys(row["model"] for row in rows):
        cells = [STEPS[by[model, name]["fits_by"]] for name in boards]
        table.add_row(escape(Path(model).name), *cells)
    show.console.print(table)
    for row in rows:
        if row["fits_by"] is None:
            text = f"{Path(row['model']).name} on {row['board']}: {row['why_not']}"
            show.console.print(escape(text))
    facts = {"pairs": f"{len(rows):,}", "fit whole": f"{counted['whole']:,}"}
    facts |= {"and by rows": f"{counted['rows']:,}", "and by all": f"{counted['fit']:,}"}
    show.facts("", facts | _others(rows))


def _others(rows: list[Row]) -> dict[str, str]:
    """The boards that do for models that fit none of those that were asked for."""
    found = {}
    for model in dict.fromkeys(row["model"] for row in rows):
        mine = [row for row in rows if row["model"] == model]
        if not any(row["fits_by"] for row in mine):
            do = dict.fromkeys(name for row in mine for name in row["boards"])
            found[f"{Path(model).name} fits"] = ", ".join(do) or "no board that is known"
    return found
