"""``serenity sparse order``: an order of connections with few I/Os."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer

from tvm_serenity.cli import show
from tvm_serenity.cli.sparse import (
    Density,
    Edges,
    Json,
    Memory,
    Mlp,
    NamedNetwork,
    Onnx,
    Output,
    Seed,
    TimeLimit,
    sparse_app,
    subject,
)
from tvm_serenity.deadline import within
from tvm_serenity.sparse import FFNN, Policy
from tvm_serenity.sparse.edges import write_edges
from tvm_serenity.sparse.orders import (
    CONSTRUCTED,
    ORDERS,
    Annealing,
    Ordered,
    OrderOptions,
    Progress,
    order,
)
from tvm_serenity.sparse.orders.result import TIME
from tvm_serenity.sparse.phases import phase_bound
from tvm_serenity.sparse.simulate import policy_of


@sparse_app.command("order")
def order_command(
    mlp: Mlp = None,
    density: Density = None,
    seed: Seed = 0,
    onnx: Onnx = None,
    edges: Edges = None,
    memory: Memory = 100,
    policy: Annotated[str, typer.Option(help=f"Of {', '.join(Policy)}.")] = "min",
    method: Annotated[str, typer.Option("--order", help=f"Of {', '.join(ORDERS)}.")] = "auto",
    time_limit: TimeLimit = None,
    iterations: Annotated[
        int, typer.Option(min=0, metavar="T", help="Of annealing, at most.")
    ] = 1_000_000,
    bound: Annotated[
        bool, typer.Option("--bound", help="Work out a lower bound of this very network, too.")
    ] = False,
    json: Json = False,
    output: Output = None,
) -> None:
    """Order the connections of a sparse network for few reads and writes.

    Fast memory holds M values: one connection, M - 1 neurons. No order needs
    fewer than W + N + S I/Os; the order it starts from ("two-optimal") needs at
    most twice the least. "auto" takes the best of all and improves it until
    the time is up.

    [dim]Examples[/dim]
      serenity sparse order --mlp 500x4 --density 0.01 --memory 100 --time-limit 10
      serenity sparse order --onnx mlp.onnx --density 0.05 -o ordered.txt
      serenity sparse order --edges net.txt --order anneal --policy lru --json

    Ctrl-C ends the search with the best order so far; it is printed and saved.
    """
    asked = subject(mlp, onnx, edges, density, seed)
    with within(time_limit), _progress(asked) as told:
        settings = OrderOptions(
            memory,
            policy_of(policy),
            seed,
            time_limit,
            Annealing(iterations),
            told,
        )
        start = order(asked.net, settings, "two-optimal")
        found = _ordered(asked.net, settings, method, start)
    if output is not None:
        write_edges(asked.net, found.order, output)
    result = {
        "network": asked.name,
        **asked.facts(),
        "memory": memory,
        "policy": str(settings.policy),
        "seed": seed,
        "bounds": asked.bounds(),
        **({"phase_bound": {"total": phase_bound(asked.net, memory)}} if bound else {}),
        "start": {**asdict(start.traffic), "total": start.total},
        "result": _result(asked, found),
        "seconds": round(found.seconds, 6),
        "output": output,
    }
    if json:
        show.print_json(result)
    else:
        _print(asked, result, found)
    if found.limit == "interrupt":
        print("serenity: interrupted; this is the best order so far", file=sys.stderr)
        raise typer.Exit(130)


def _ordered(net: FFNN, settings: OrderOptions, method: str, start: Ordered) -> Ordered:
    """The order that was asked for; ``start``, two-optimal, where no other is made in time."""
    if method == start.method:
        return start
    if method not in CONSTRUCTED and settings.clock(net)() < 0:
        return replace(start, limit=TIME)
    return order(net, settings, method)


def _result(asked: NamedNetwork, found: Ordered) -> dict[str, Any]:
    return {
        "order": found.method,
        "reads": found.traffic.reads,
        "writes": found.traffic.writes,
        "total": found.total,
        "ratio": round(found.total / asked.bounds()["total"], 6),
        "limit": found.limit or None,
        "statistics": found.statistics,
    }


def _print(asked: NamedNetwork, result: dict[str, Any], found: Ordered) -> None:
    least = result["bounds"]["total"]
    start = result["start"]["total"]
    rows = {
        "bound": f"{least:,} I/Os (W + N + S)",
        "start": f"{start:,}: {start / least:.4f} times the bound",
        "found": f"{found.total:,}: {found.total / least:.4f} times the bound "
        f"({found.traffic.reads:,} reads, {found.traffic.writes:,} writes)",
        "by": f"{found.method}, {found.seconds:.2f} s" + (", time is up" * (found.limit == "time")),
    }
    if "phase_bound" in result:
        rows["of this network"] = f"at least {result['phase_bound']['total']:,} I/Os"
    if result["output"]:
        rows["written to"] = str(result["output"])
    show.facts(
        f"{asked.name}: {found.order.size:,} connections, {asked.net.neurons:,} neurons", rows
    )


@contextmanager
def _progress(asked: NamedNetwork) -> Iterator[Callable[[Progress], None] | None]:
    err = show.PlainConsole(stderr=True)
    if not err.is_terminal:
        yield None
        return
    least = asked.bounds()["total"]
    with err.status("ordering") as status:
        yield lambda report: status.update(
            f"{report.order}: best {report.best:,} I/Os, {report.best / least:.4f} times the "
            f"bound, {report.seconds:.0f} s"
        )
