"""``serenity rows``: split operators into bands of rows for a smaller arena."""

from collections.abc import Sequence

import typer
from rich.table import Table

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.options import Model
from tvm_serenity.commands.rows import RowsResult, rows
from tvm_serenity.commands.rows_options import RowsOptions
from tvm_serenity.memory import peak_of
from tvm_serenity.options.output import Shown
from tvm_serenity.rows.choose import Choice, table_bytes
from tvm_serenity.rows.described import point, recomputed_text, rows_text
from tvm_serenity.rows.stream import Streaming


@command("rows")
def rows_command(model: Model, options: RowsOptions, shown: Shown) -> None:
    """Split operators into bands of rows, order and place them: the same outputs, less memory.

    An operator computes one band at a time and reads only the input rows that the band needs. No
    row is computed twice, and outputs are bit-identical. Operators that need complete tensors stay
    unsplit and are listed. "bound" is a lower bound for every order and placement at these band
    heights. --recompute allows a layer to recompute the 1x1 convolution that it reads; "bound" is
    then the bound of the network with these layers.

    [dim]Examples[/dim]
      serenity rows person_detect.tflite
      serenity rows person_detect.tflite --ram 16K --stream-input
      serenity rows person_detect.tflite --recompute 1.15
      serenity rows zoo:mobilenet-v2?layout=NHWC&quantised=1 --curve
      serenity rows keywords.tflite --sliding 2

    serenity build --rows writes firmware that runs in bands. Ctrl-C keeps the best so far. Exit
    status 1 if no split fits --ram.
    """
    show.warn_without_core()
    result = rows(model, options, show.progress)
    if shown.json:
        show.print_json(result.json())
    elif isinstance(result, RowsResult):
        _print(model, result.chosen, result.points)
    else:
        from tvm_serenity.cli.sliding import print_step

        print_step(result)
    if not result.met:
        raise typer.Exit(1)


def _print(model: str, chosen: Choice, points: Sequence[Streaming]) -> None:
    best = chosen.best
    rows = {
        "arena": f"{best.arena_bytes:,} bytes (peak {best.schedule.peak_bytes:,})",
        "rows per band": rows_text(best),
        "proof": f"{best.outcome}: no order at these bands needs less than "
        f"{best.lower_bound_bytes:,} bytes (gap {best.gap:.1%})",
        "input": "arrives row by row" if best.banded.feeding is not None else "in memory",
        "ops": f"{len(best.banded.graph.ops):,}",
        "tables": f"about {table_bytes(best.banded):,} bytes",
        "search": f"{chosen.seconds:.1f} s",
    }
    if chosen.untried:
        rows["not tried"] = f"bands of {', '.join(map(str, chosen.untried))} rows: time limit"
    if chosen.recomputed is not None:
        rows["recomputation"] = recomputed_text(chosen.recomputed.json())
    if best.banded.network.unsplit:
        rows["unsplit"] = "; ".join(best.banded.network.unsplit)
    if not chosen.met:
        graph = best.banded.graph
        live = peak_of(graph, best.schedule.order).ranges
        rows["live at the peak"] = ", ".join(f"{r.name} {r.size_bytes:,}" for r in live[:6])
        show.facts(f"{model}: no split within the limits; the smallest found", rows)
        return
    show.facts(f"{model} in bands of rows", rows)
    if points:
        table = Table(box=None)
        for name in ("rows", "arena", "peak", "bound", "gap", "ops", "table"):
            table.add_column(name, justify="right")
        for row in map(point, points):
            table.add_row(
                row["rows"],
                f"{row['arena_bytes']:,}",
                f"{row['peak_bytes']:,}",
                f"{row['lower_bound_bytes']:,}",
                f"{row['gap']:.1%}",
                f"{row['ops']:,}",
                f"{row['table_bytes']:,}",
            )
        show.console.print(table)
