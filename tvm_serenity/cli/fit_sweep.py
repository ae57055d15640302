"""``serenity fit MODELS --boards ...``: which networks fit which boards, and by what."""

from pathlib import Path

from rich.markup import escape
from rich.table import Table

from tvm_serenity.cli import show
from tvm_serenity.search.sweeps import Row

STEPS = {"whole": "whole", "rows": "rows", "fit": "fit", None: "-"}


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
