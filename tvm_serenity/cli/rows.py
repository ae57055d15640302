"""``serenity rows``: what a network needs when its operators run row by row."""

from collections.abc import Sequence

import typer
from rich.table import Table

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.options import Model
from tvm_serenity.commands.rows import RowsFound, rows
from tvm_serenity.commands.rows_options import RowsOptions
from tvm_serenity.memory import peak_of
from tvm_serenity.options.output import Shown
from tvm_serenity.rows.choose import Choice, table_bytes
from tvm_serenity.rows.described import point, recomputed_text, rows_text
from tvm_serenity.rows.stream import Streaming


@command("rows")
def rows_command(model: Model, options: RowsOptions, shown: Shown) -> None:
    """Split operators into bands of rows, order and place them: the same results in less memory.

    Every operator runs a few rows at a time and reads only the rows it needs.
    Nothing is computed twice, every output is bit-identical. What needs whole
    tensors stays whole and is listed. "bound" holds for every order and every
    placement at those band heights. With --recompute, 1x1 convolutions may be
    made again inside of what reads them; "bound" is then that of these layers.

    [dim]Examples[/dim]
      serenity rows person_detect.tflite
      serenity rows person_detect.tflite --ram 16K --stream-input
      serenity rows person_detect.tflite --recompute 1.15
      serenity rows zoo:mobilenet-v2?layout=NHWC&quantised=1 --curve
      serenity rows keywords.tflite --sliding 2

    serenity build --rows runs it on a board. Ctrl-C keeps the best so far.
    Exit status 1 when no split reaches --ram.
    """
    show.warn_without_core()
    found = rows(model, options, show.progress)
    if shown.json:
        show.print_json(found.json())
    elif isinstance(found, RowsFound):
        _print(model, found.chosen, found.points)
    else:
        from tvm_serenity.cli.sliding import print_step

        print_step(found)
    if not found.met:
        raise typer.Exit(1)


def _print(model: str, chosen: Choice, points: Sequence[Streaming]) -> None:
    best = chosen.best
    rows = {
        "arena": f"{best.arena_bytes:,} bytes (peak {best.schedule.peak_bytes:,})",
        "rows in a band": rows_text(best),
        "proof": f"{best.outcome}: no order at these bands needs less than "
        f"{best.lower_bound_bytes:,} bytes (gap {best.gap:.1%})",
        "input": "arrives row by row" if best.banded.feeding is not None else "in memory",
        "ops": f"{len(best.banded.graph.ops):,}",
        "tables": f"about {table_bytes(best.banded):,} bytes",
        "search": f"{chosen.seconds:.1f} s",
    }
    if chosen.untried:
        rows["not tried"] = f"bands of {', '.join(map(str, chosen.untried))} rows: out of time"
    if chosen.recomputed is not None:
        rows["computed again"] = recomputed_text(chosen.recomputed.json())
    if best.banded.network.unsplit:
        rows["unsplit layers"] = "; ".join(best.banded.network.unsplit)
    if not chosen.met:
        graph = best.banded.graph
        live = peak_of(graph, best.schedule.order).ranges
        rows["in the way"] = ", ".join(f"{r.name} {r.size_bytes:,}" for r in live[:6])
        show.facts(f"{model}: no split found within the limits; the least", rows)
        return
    show.facts(f"{model} in rows", rows)
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
