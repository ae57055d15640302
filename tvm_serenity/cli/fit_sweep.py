"""``serenity fit MODELS --boards ...``: which networks fit which boards, by which strategy."""

from pathlib import Path

from rich.markup import escape
from rich.table import Table

from tvm_serenity.cli import show
from tvm_serenity.search.sweeps import Row


def print_fits(rows: list[Row], json: bool) -> None:
    """Print the strategy that fits, a row per model and a column per board, then the counts."""
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
        cells = [by[model, name]["fits_by"] or "-" for name in boards]
        table.add_row(escape(Path(model).name), *cells)
    show.console.print(table)
    for row in rows:
        if row["fits_by"] is None:
            text = f"{Path(row['model']).name} on {row['board']}: {row['why_not']}"
            show.console.print(escape(text))
    facts = {"pairs": f"{len(rows):,}", "fit unsplit": f"{counted['unsplit']:,}"}
    facts["also fit in rows"] = f"{counted['rows']:,}"
    facts["also fit by search"] = f"{counted['fit']:,}"
    show.facts("", facts | _others(rows))


def _others(rows: list[Row]) -> dict[str, str]:
    """Return the boards that fit each model which fits none of the given boards."""
    fitting = {}
    for model in dict.fromkeys(row["model"] for row in rows):
        pairs = [row for row in rows if row["model"] == model]
        if not any(row["fits_by"] for row in pairs):
            names = dict.fromkeys(name for row in pairs for name in row["boards"])
            fitting[f"{Path(model).name} fits"] = ", ".join(names) or "no known board"
    return fitting
