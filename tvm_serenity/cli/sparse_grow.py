"""``serenity sparse grow``: networks without temporary I/O, and the memory that takes."""

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
from tvm_serenity.sparse import compact_growth
from tvm_serenity.sparse.edges import write_edges
from tvm_serenity.sparse.growth import smallest_memory


@sparse_app.command("grow")
def grow_command(
    mlp: Mlp = None,
    density: Density = None,
    seed: Seed = 0,
    onnx: Onnx = None,
    edges: Edges = None,
    memory: Memory = 100,
    neurons: Annotated[int, typer.Option(min=0, help="Grown, besides inputs and output.")] = 1000,
    in_degree: Annotated[int, typer.Option(min=1, help="Connections into a grown neuron.")] = 5,
    time_limit: TimeLimit = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Grow a network that M values compute without temporary I/O, or examine one.

    Without a network, Compact Growth makes one for M. Says whether N + W reads
    and S writes are enough at M, and the smallest M the search finds for that
    (with an order as proof) and the M it cannot be below. Exit status 1 where
    it is proved that M is too small.

    [dim]Examples[/dim]
      serenity sparse grow --memory 100 -o grown.txt
      serenity sparse grow --edges net.txt --memory 40 --time-limit 5
    """
    given = [mlp, onnx, edges]
    if any(option is not None for option in given):
        asked = subject(mlp, onnx, edges, density, seed)
    else:
        asked = NamedNetwork(
            f"grown for {memory}", compact_growth(memory, neurons, in_degree, seed)
        )
    found = smallest_memory(asked.net, time_limit, seed=seed)
    computable: bool | None = True if found.memory <= memory else None
    if memory < found.least:
        computable = False
    if output is not None:
        write_edges(asked.net, found.order, output)
    result: dict[str, Any] = {
        "network": asked.name,
        **asked.facts(),
        "bounds": asked.bounds(),
        "memory": memory,
        "computable": computable,
        "smallest_memory": found.memory,
        "least_memory": found.least,
        "outcome": str(found.outcome),
        "output": output,
    }
    if json:
        show.print_json(result)
    else:
        answer = {True: "yes", False: "no, proved", None: "no order found"}[computable]
        show.facts(
            asked.title(),
            {
                f"M = {memory} is enough": answer,
                "smallest M found": f"{found.memory} ({found.outcome})",
                "no M below": str(found.least),
                **({"written to": output} if output else {}),
            },
        )
    if computable is False:
        raise typer.Exit(1)
