"""``serenity rows``: what a network needs when its operators run row by row."""

import json as json_module
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tvm_serenity.cli import app, show
from tvm_serenity.cli.models import Part, part, source
from tvm_serenity.cli.options import (
    Dims,
    Json,
    Model,
    Recompute,
    Signature,
    Sliding,
    StreamInput,
    TimeLimit,
    sized,
)
from tvm_serenity.deadline import within
from tvm_serenity.errors import InputError
from tvm_serenity.files import write_bytes
from tvm_serenity.memory import peak_of
from tvm_serenity.plots import check_plot
from tvm_serenity.rows.bound import rows_bound
from tvm_serenity.rows.choose import (
    Choice,
    Goal,
    at_most_in_memory,
    check_splittable,
    choose,
    curve,
    recomputed,
    table_bytes,
)
from tvm_serenity.rows.described import described, point, recomputed_text, rows_text
from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.network import Network
from tvm_serenity.rows.recompute import recompute as again
from tvm_serenity.rows.split import heights_of
from tvm_serenity.rows.stream import Streaming, stream
from tvm_serenity.rows.tiles import without_between
from tvm_serenity.sizes import check_work_factor

if TYPE_CHECKING:
    from tvm_serenity.relax.rows_read import RowModule

AUTO = "auto"

Ram = Annotated[int | None, sized("The coarsest bands whose arena fits, like 16K.", "--ram")]


@app.command("rows")
def rows_command(
    model: Model,
    bands: Annotated[
        str, typer.Option(metavar="N|auto", help="Rows in a band; auto: the least arena.")
    ] = AUTO,
    stream_input: StreamInput = False,
    recompute: Recompute = None,
    sliding: Sliding = None,
    causal: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.tflite",
            help="With --sliding: write another network, which sees more of the past instead of "
            "padding in time, and look at that.",
        ),
    ] = None,
    ram: Ram = None,
    table: Annotated[int | None, sized("Most bytes of tables in flash.")] = None,
    curve_too: Annotated[
        bool, typer.Option("--curve", help="Show every band height, from all rows to one.")
    ] = False,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw the curve (.svg .png .pdf).")
    ] = None,
    graph_only: Annotated[
        bool, typer.Option("--graph", help="Read a .tflite file alone, without its kernels.")
    ] = False,
    certified: Annotated[
        str | None,
        typer.Option(
            "--certificate",
            metavar="FILE.json",
            help="Write a bound for every height of bands, with --recompute for all chains in "
            "tiles, too; 'serenity check' verifies it.",
        ),
    ] = None,
    time_limit: TimeLimit = None,
    dim: Dims = None,
    signature: Signature = None,
    json: Json = False,
    check: Annotated[
        bool, typer.Option("--check", help="Verify order and plan by the naive checkers.")
    ] = False,
    run: Annotated[
        bool,
        typer.Option(
            "--run", help="With --sliding: run 50 windows on the Relax VM, and compare each."
        ),
    ] = False,
) -> None:
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
    check_plot(plot)
    for option, given in (("--causal", causal is not None), ("--run", run)):
        if given and sliding is None:
            raise InputError(f"{option} goes with --sliding: it is for windows that move")
    if sliding is not None:
        from tvm_serenity.cli.sliding import sliding_command

        others = {
            "--bands": None if bands == AUTO else bands,
            "--stream-input": stream_input,
            "--table": table,
            "--plot": plot,
            "--graph": graph_only,
            "--certificate": certified,
            "--recompute": recompute,
        }
        sliding_command(
            model,
            sliding,
            part(dim, signature),
            causal=causal,
            ram=ram,
            curve_too=curve_too,
            time_limit=time_limit,
            check=check,
            run=run,
            json=json,
            others=others,
        )
        return
    if recompute is not None:
        check_work_factor(recompute)
        once = "of layers that are computed once"
        _refuse(graph_only, "--graph", "what is computed again is read off kernels")
        _refuse(curve_too, "--curve", f"it is {once}")
        _refuse(plot, "--plot", f"the curve is {once}")
    read = rows_of(model, part(dim, signature), graph_only)
    network = read if isinstance(read, Network) else read.network
    check_splittable(network)
    show.warn_without_core()
    goal = Goal(ram, table)
    with within(time_limit), show.progress(f"rows of {model}") as report:
        limits = Limits.within(time_limit, report)
        known: dict[int, Streaming] = {}
        if curve_too or plot is not None:
            known = dict(curve(network, streamed=stream_input, limits=limits))
        points = list(known.values())
        chosen = _chosen(network, bands, goal, stream_input, limits, known)
        if recompute is not None and not isinstance(read, Network):
            from tvm_serenity.relax.row_chains import chains, work_of

            wanted = not chosen.met or goal.ram_bytes is None
            found_again = again(
                network,
                chains(read) if wanted else (),
                work_of(read),
                recompute,
                streamed=stream_input,
                rows=1 if bands == AUTO else int(bands),
            )
            chosen = recomputed(
                chosen,
                found_again,
                network,
                lambda tiles: _chosen(tiles, bands, goal, stream_input, limits.of_tiles, {}),
            )
        if certified is not None:
            covered = network if recompute is None else any_chains(read)
            bound = rows_bound(covered, streamed=stream_input, limits=limits)
            also = {"graph_only": graph_only, "recompute": recompute is not None}
            claims = {**bound.certificate(), **also}
            write_bytes(certified, (json_module.dumps(claims) + "\n").encode())
    if check:
        chosen.best.check()
    if plot is not None:
        from tvm_serenity.rows.figure import plot_curve

        plot_curve(network.name, points, plot)
    found = {"curve": [point(s) for s in points], "checked": check}
    result = {"model": model, **described(chosen), **found}
    if json:
        show.print_json(result)
    else:
        _print(model, chosen, points)
    if not chosen.met:
        raise typer.Exit(1)


def _refuse(given: object, option: str, why: str) -> None:
    """Raise :class:`InputError` where ``option`` is given beside ``--recompute``."""
    if given:
        raise InputError(f"--recompute does not take {option}: {why}")


def network_of(model: str, of: Part, graph_only: bool, again: bool = False) -> Network:
    """Return a model as rows: by its kernels, or by the file alone.

    ``again``: as a bound for all that may be made in tiles or computed again has it.
    """
    read = rows_of(model, of, graph_only)
    if again:
        return any_chains(read)
    return read if isinstance(read, Network) else read.network


def any_chains(read: "Network | RowModule") -> Network:
    """Return the network that bounds every choice of chains; without kernels there are none."""
    if isinstance(read, Network):
        return read
    from tvm_serenity.relax.row_chains import chains

    return without_between(read.network, chains(read))


def rows_of(model: str, of: Part, graph_only: bool) -> "Network | RowModule":
    """Return the same with its kernels, where it is read by them."""
    opened = source(model, of)
    if graph_only:
        from tvm_serenity.frontends.tflite_file import TfliteFile
        from tvm_serenity.frontends.tflite_rows import network_of as from_file

        file = opened.file()
        if not isinstance(file, TfliteFile):
            raise InputError(f"{model}: --graph reads .tflite files")
        return from_file(file)
    opened.check_operators()  # before TVM, whose import takes seconds
    from tvm_serenity.relax.pipeline import Steps, prepared
    from tvm_serenity.relax.rows_read import read_rows

    ready = prepared(opened.module(), Steps(layout="last"), "llvm")  # of no machine's own kernels
    return read_rows(ready.plain, model)


def _chosen(
    network: Network,
    bands: str,
    goal: Goal,
    streamed: bool,
    limits: Limits,
    known: Mapping[int, Streaming],
) -> Choice:
    """``known``: what the curve has found, by rows a band."""
    if bands == AUTO:
        return choose(network, goal, streamed=streamed, limits=limits, known=known)
    if not bands.isdigit() or int(bands) < 1:
        raise InputError(f"--bands {bands!r}: write a number of rows from 1 on, or {AUTO}")
    heights = heights_of(network, int(bands))
    same = (s for s in known.values() if s.banded.heights == heights)
    found = next(same, None) or stream(network, heights, streamed=streamed, limits=limits)
    found = at_most_in_memory(found, limits)
    return Choice(found, goal.met(found), (found,), found.seconds)


def _print(model: str, chosen: Choice, points: list[Streaming]) -> None:
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
    if best.banded.network.left_whole:
        rows["left whole"] = "; ".join(best.banded.network.left_whole)
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
