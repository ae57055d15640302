"""``serenity offchip``: off-chip traffic of orders, and the search for an order of low traffic."""

import csv
import io
import json as json_text
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.commands.offchip import TrafficResult, offchip
from tvm_serenity.commands.offchip_options import OffchipOptions
from tvm_serenity.offchip import TrafficOrder
from tvm_serenity.offchip.points import COLUMNS
from tvm_serenity.options.option import Conflict, Option, option
from tvm_serenity.options.output import Shown

ANY_WIDTH = 1000

Models = Annotated[
    list[str] | None, typer.Argument(metavar="MODEL...", help="Files, or zoo:NAME?param=value.")
]


@dataclass(frozen=True, kw_only=True)
class ShownRows(Shown):
    """The options of what ``offchip`` prints; ``csv``: the rows as CSV."""

    csv: bool = option(
        False,
        Option(
            flag="--csv",
            help="Print rows as CSV.",
            conflicts=(Conflict("json", "the rows have one output format"),),
        ),
    )


@command("offchip")
def offchip_command(models: Models = None, *, options: OffchipOptions, shown: ShownRows) -> None:
    """Simulate the off-chip traffic of orders, or search for an order of less traffic.

    Each operator reads the blocks of its inputs and writes the blocks of its outputs. If on-chip
    memory is full, the policy evicts a block, which is read again later; dead blocks are dropped.
    "belady" is the optimal policy, which knows all future accesses. "compulsory" bytes move at
    every capacity: inputs, outputs and weights.

    [dim]Examples[/dim]
      serenity offchip zoo:swiftnet-cell-a --capacities 32K:1M:x2
      serenity offchip a.tflite b.onnx --orders given,traffic --plot f.svg
      serenity offchip a.tflite --order-for traffic --capacity 256K -o b.tflite
      serenity offchip a.tflite --block tensor --memory scratchpad

    Ctrl-C keeps the finished points and prints the command that resumes the sweep. At the time
    limit, an order is the best so far, and points that were not simulated are empty: their column
    "limit" says "time".
    """
    show.warn_without_core()
    result = offchip(models or (), options, show.progress)
    if not isinstance(result, TrafficResult):
        _show(result, shown.json, shown.csv)
        return
    if shown.json:
        show.print_json(result.json())
    else:
        _print_order(result.model, result.ops, result.order, result.output)
    if result.interrupted:
        show.end_interrupted("order")


def _show(rows: list[dict[str, Any]], json: bool, csv_rows: bool) -> None:
    if json:
        typer.echo(json_text.dumps(rows, indent=2))
    elif csv_rows:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]) if rows else COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        typer.echo(text.getvalue(), nl=False)
    else:
        for model in dict.fromkeys(row["model"] for row in rows):
            _table(model, [row for row in rows if row["model"] == model])


def _table(model: str, rows: list[dict[str, Any]]) -> None:
    """Print the rows of a model in full width; a narrow terminal wraps the lines."""
    table = Table(title=escape(model), title_justify="left", box=None)
    limited = any(row["limit"] for row in rows)
    shown = [name for name in rows[0] if name != "model" and (limited or name != "limit")]
    for name in shown:
        number = isinstance(rows[0][name], int | float)
        head = name.removesuffix("_bytes").replace("_", " ")
        table.add_column(head, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        values = [row[name] for name in shown]
        table.add_row(*map(_cell, values))
    wide = show.PlainConsole(highlight=False, width=ANY_WIDTH)
    wide.width = max(wide.measure(table).maximum, show.console.width)
    wide.print(table)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if type(value) in (int, float) else str(value)


def _print_order(spec: str, ops: int, order: TrafficOrder, output: str | None) -> None:
    others = ", ".join(f"{name} {total:,}" for name, total in order.starts.items())
    show.facts(
        f"{spec}: {ops} ops, {order.capacity_bytes:,} bytes on-chip",
        {
            "traffic": f"{order.total_bytes:,} bytes ({order.compulsory_bytes:,} compulsory)",
            "other orders": others or "-",
            "proof": f"{order.outcome}: at least {order.lower_bound_bytes:,} (gap {order.gap:.1%})",
            "search": f"{order.seconds:.2f} s",
        },
    )
    if output is not None:
        show.console.print(f"written to {output}")
