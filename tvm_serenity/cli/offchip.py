"""``serenity offchip``: traffic between on-chip and off-chip memory, and orders made for it."""

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
from tvm_serenity.commands.offchip import TrafficFound, offchip
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
    """``csv``: rows as CSV."""

    csv: bool = option(
        False,
        Option(
            flag="--csv",
            help="Print rows as CSV.",
            conflicts=(Conflict("json", "rows are printed once"),),
        ),
    )


@command("offchip")
def offchip_command(models: Models = None, *, options: OffchipOptions, shown: ShownRows) -> None:
    """Measure what an order costs in off-chip traffic, or find a cheaper one.

    Every op reads the blocks of its inputs and writes those of its outputs.
    What does not fit on-chip is evicted by the policy ("belady" knows the
    future) and read again; what is dead is dropped. "compulsory" bytes move
    whatever the capacity: inputs, outputs, weights.

    [dim]Examples[/dim]
      serenity offchip zoo:swiftnet-cell-a --capacities 32K:1M:x2
      serenity offchip a.tflite b.onnx --orders given,traffic --plot f.svg
      serenity offchip a.tflite --order-for traffic --capacity 256K -o b.tflite
      serenity offchip a.tflite --block tensor --memory scratchpad

    Ctrl-C keeps what is finished and says how to go on. At the --time-limit
    an order is the best so far, and what was not measured is left empty: the
    column limit says "time".
    """
    show.warn_without_core()
    found = offchip(models or (), options, show.progress)
    if not isinstance(found, TrafficFound):
        _show(found, shown.json, shown.csv)
        return
    if shown.json:
        show.print_json(found.json())
    else:
        _print_order(found.model, found.ops, found.order, found.output)
    if found.interrupted:
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
    """Print a model's rows; never shortened: a narrow terminal wraps the lines."""
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


def _print_order(spec: str, ops: int, found: TrafficOrder, output: str | None) -> None:
    starts = ", ".join(f"{name} {total:,}" for name, total in found.starts.items())
    show.facts(
        f"{spec}: {ops} ops, {found.capacity_bytes:,} bytes on-chip",
        {
            "traffic": f"{found.total_bytes:,} bytes ({found.compulsory_bytes:,} compulsory)",
            "orders before": starts or "-",
            "proof": f"{found.outcome}: at least {found.lower_bound_bytes:,} (gap {found.gap:.1%})",
            "search": f"{found.seconds:.2f} s",
        },
    )
    if output is not None:
        show.console.print(f"written to {output}")
