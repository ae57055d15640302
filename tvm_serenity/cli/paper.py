"""``serenity paper``: figures and tables of the papers, ours beside them."""

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.commands.paper import Listed, PaperOptions, Reproduced, paper
from tvm_serenity.options.output import Shown
from tvm_serenity.papers import PAPERS
from tvm_serenity.papers.record import Value

Name = Annotated[str, typer.Argument(metavar="NAME", help=f"One of: {', '.join(PAPERS)}.")]


@command("paper")
def paper_command(name: Name, options: PaperOptions, shown: Shown) -> None:
    """Compute a figure or table of a paper: its values and ours, cell by cell.

    Without --figure and --table it lists what can be computed.

    [dim]Examples[/dim]
      serenity paper serenity --figure 12
      serenity paper liberis-lane --table 1 --json
    """
    found = paper(name, options, show.progress)
    if shown.json:
        show.print_json(found.json())
    elif isinstance(found, Listed):
        show.facts(found.paper.title, {one.name: one.title for one in found.exhibits})
    else:
        _print(found)


def _print(found: Reproduced) -> None:
    show.console.print(found.paper.title, style="bold", markup=False)
    show.console.print(f"{found.exhibit.name}: {found.exhibit.title}", markup=False)
    show.console.print(found.exhibit.setting, markup=False)
    table = Table(box=None)
    table.add_column("quantity")
    table.add_column("paper", justify="right", no_wrap=True)
    table.add_column("ours", justify="right", no_wrap=True)
    table.add_column("difference", justify="right", no_wrap=True)
    table.add_column("note")
    for cell in found.cells:
        difference = "" if cell.difference is None else f"{cell.difference:+.1%}"
        table.add_row(
            escape(cell.quantity),
            value_text(cell.paper, cell.unit),
            value_text(cell.ours, cell.unit),
            difference,
            escape(cell.note),
        )
    show.console.print(table)


def value_text(value: Value, unit: str) -> str:
    """Return a value with its unit; words as they are, a dash for a value that does not exist."""
    if value is None:
        return "-"
    text = f"{value:,}" if isinstance(value, int | float) else value
    return f"{text} {unit}".strip() if any(map(str.isdigit, text)) else text
