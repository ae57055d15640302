"""``serenity offchip``: traffic between on-chip and off-chip memory, and orders made for it."""

import csv
import io
import json as json_text
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from tvm_serenity.cli import app, show
from tvm_serenity.cli.models import Part, part, source
from tvm_serenity.cli.options import SEARCH_SHARE, Dims, Signature, TimeLimit, sized, value_of
from tvm_serenity.cli.rewrite import REWRITE_SHARE, read
from tvm_serenity.cli.sweeping import kept_on_interrupt
from tvm_serenity.deadline import within
from tvm_serenity.errors import InputError
from tvm_serenity.frontends import ModelFile, save
from tvm_serenity.graph import Graph
from tvm_serenity.offchip import (
    ORDERS,
    POLICIES,
    InputPlace,
    Memory,
    Model,
    SearchOptions,
    Sweep,
    TrafficOrder,
    Weights,
    capacities_of,
    energy_of,
    points_of,
    run_points,
    traffic_order,
)
from tvm_serenity.offchip.energy import REGIONS, ExternalMemory, region_of
from tvm_serenity.offchip.figure import plot_reduction
from tvm_serenity.offchip.orders import Versions
from tvm_serenity.offchip.points import COLUMNS, point_file
from tvm_serenity.offchip.rewritten import rewritten_subject
from tvm_serenity.offchip.storages import Subject
from tvm_serenity.plots import check_plot
from tvm_serenity.rewrite import Net
from tvm_serenity.sizes import size_bytes

WHOLE = "tensor"
ANY_WIDTH = 1000

Models = Annotated[
    list[str] | None, typer.Argument(metavar="MODEL...", help="Files, or zoo:NAME?param=value.")
]
Block = Annotated[
    str, typer.Option(metavar="SIZE", help=f"Bytes moved at a time, or {WHOLE!r} (scratchpad).")
]


@app.command("offchip")
def offchip_command(
    models: Models = None,
    capacities: Annotated[
        str,
        typer.Option(metavar="SIZES", help="On-chip memory: sizes, FIRST:LAST:xFACTOR or :+STEP."),
    ] = "32K:256K:x2",
    orders: Annotated[
        str, typer.Option(metavar="NAMES", help=f"Of {', '.join(ORDERS)}.")
    ] = "given,serenity",
    policy: Annotated[
        str, typer.Option(metavar="NAMES", help=f"Of {', '.join(POLICIES)}.")
    ] = "belady",
    block: Block = "256",
    memory: Annotated[Memory, typer.Option(help="Write-back cache, or software-managed.")] = (
        Memory.CACHE
    ),
    inputs: Annotated[
        InputPlace, typer.Option(help="Where graph inputs start.")
    ] = InputPlace.OFF_CHIP,
    weights: Annotated[
        Weights, typer.Option(help="Count weights, streamed by every op that reads them.")
    ] = Weights.NONE,
    json: Annotated[bool, typer.Option("--json", help="Print rows as JSON.")] = False,
    csv_rows: Annotated[bool, typer.Option("--csv", help="Print rows as CSV.")] = False,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw SERENITY's figure 11 (.svg .png .pdf).")
    ] = None,
    energy: Annotated[
        str | None,
        typer.Option(
            metavar="REGION", help=f"Add energy and time: {', '.join(REGIONS)}, or FILE.toml:NAME."
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes on this machine.")] = 1,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler, tcp://HOST:PORT.")
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Keep finished points here; skip those it holds."),
    ] = None,
    order_for: Annotated[
        str | None,
        typer.Option(metavar="traffic", help="Find an order of one MODEL for one --capacity."),
    ] = None,
    capacity: Annotated[int | None, sized("The capacity for --order-for.", least=1)] = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="With --order-for: the model reordered.")
    ] = None,
    effort: Annotated[
        int, typer.Option(min=0, help="Accesses simulated in search of an order, in millions.")
    ] = 60,
    seed: Annotated[int, typer.Option(min=0, help="Seed of that search.")] = 0,
    time_limit: TimeLimit = None,
    dim: Dims = None,
    signature: Signature = None,
) -> None:
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
    moved = None if block == WHOLE else value_of("--block", partial(size_bytes, least=1), block)
    model = Model(moved, memory, inputs, weights)
    search = SearchOptions(effort * 1_000_000, effort * 1_000_000, seed=seed)
    region = None if energy is None else region_of(energy)
    if json and csv_rows:
        raise InputError("choose --json or --csv")
    if not models:
        raise InputError("no models: name at least one file or zoo:NAME")
    if order_for is not None:
        if order_for != "traffic" or capacity is None or len(models) != 1:
            raise InputError("--order-for traffic takes one MODEL and --capacity SIZE")
        opened = source(models[0], part(dim, signature)).file()
        with within(None if time_limit is None else SEARCH_SHARE * time_limit):
            _order(opened, models[0], capacity, model, search, output, json)
        return
    if capacity is not None or output is not None:
        raise InputError("--capacity and --output go with --order-for traffic")
    if dask is not None and time_limit is not None:
        raise InputError("--time-limit goes without --dask: other machines have other clocks")
    check_plot(plot)
    sizes = value_of("--capacities", capacities_of, capacities)
    settings = Sweep(sizes, _names(orders), _names(policy), model, search)
    show.warn_without_core()
    rewrites = any(ORDERS[order].rewrites for order in settings.orders)
    given = {spec: read_of(spec, part(dim, signature), rewrites) for spec in dict.fromkeys(models)}
    with within(None if time_limit is None else SEARCH_SHARE * time_limit):
        with within(None, REWRITE_SHARE):
            networks = {spec: versions_of(*read) for spec, read in given.items()}
        points = points_of(networks, settings)
        default = f"offchip-{points[0].key()[:8]}.points"
        keep = point_file(Path(resume or default))
        rows = kept_on_interrupt(partial(run_points, points, jobs, dask), keep, resume is not None)
    if plot is not None:
        plot_reduction(rows, plot, settings.policies[0])
    if region is not None:
        rows = [_with_energy(row, region) for row in rows]
    _show(rows, json, csv_rows)


def read_of(spec: str, of: Part, rewrites: bool) -> tuple[Graph, Net | None]:
    """Return a model by file or name; to be rewritten too where that is asked for."""
    opened = source(spec, of)
    return opened.file().graph, read(opened) if rewrites else None


def versions_of(graph: Graph, net: Net | None) -> Versions:
    """Return a model as it is, and rewritten where that is asked for and changes it."""
    return Versions(Subject(graph), None if net is None else rewritten_subject(net))


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _with_energy(row: dict[str, Any], region: ExternalMemory) -> dict[str, Any]:
    if row["total_bytes"] is None:
        return {**row, "region": region.name, "energy_uj": None, "time_us": None}
    found = energy_of(row["read_bytes"], row["write_bytes"], region)
    return {
        **row,
        "region": region.name,
        "energy_uj": None if found.energy_uj is None else round(found.energy_uj, 3),
        "time_us": None if found.time_us is None else round(found.time_us, 3),
    }


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


def _order(
    opened: ModelFile,
    spec: str,
    capacity: int,
    model: Model,
    search: SearchOptions,
    output: str | None,
    json: bool,
) -> None:
    """Find an order for one model and one capacity; print it, or write the reordered model."""
    found = traffic_order(opened.graph, capacity, model, replace(search, keep_on_interrupt=True))
    if output is not None:
        save(opened, list(found.order), output)
    result = {
        "model": spec,
        "capacity_bytes": capacity,
        "total_bytes": found.total_bytes,
        "compulsory_bytes": found.compulsory_bytes,
        "lower_bound_bytes": found.lower_bound_bytes,
        "gap": round(found.gap, 6),
        "outcome": str(found.outcome),
        "starts": dict(found.starts),
        "order": list(found.order),
        "statistics": dict(found.statistics),
        "output": output,
    }
    if json:
        show.print_json(result)
    else:
        _print_order(spec, len(opened.graph.ops), found, output)
    if found.statistics.get("limit") == "interrupt":
        show.end_interrupted("order")


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
