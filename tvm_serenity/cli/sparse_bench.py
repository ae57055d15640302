"""``serenity sparse bench``: a network's time against MKL, scipy and dense BLAS."""

from typing import Annotated, Any

import typer
from rich.table import Table

from tvm_serenity.cli import show
from tvm_serenity.cli.sparse import Density, Edges, Json, Mlp, Onnx, Seed, sparse_app, subject


@sparse_app.command("bench")
def bench_command(
    mlp: Mlp = None,
    density: Density = None,
    seed: Seed = 0,
    onnx: Onnx = None,
    edges: Edges = None,
    batch: Annotated[int, typer.Option(help="Columns computed at a time.")] = 128,
    repeats: Annotated[int, typer.Option(min=1, help="Rounds; the least counts.")] = 20,
    json: Json = False,
) -> None:
    """Measure a sparse network's inference: ours, MKL, scipy, dense MKL; float32, one thread.

    Ours is tuned here and now: blocks for the cache, tiles of the batch. Every
    run is compared with the exact result first. "alone" is without bias and
    activation. The ceiling is our kernel on values in the first cache, with a load
    for each multiply-add: neurons computed together share loads and can pass it.

    [dim]Examples[/dim]
      serenity sparse bench --mlp 500x4 --density 0.1
      serenity sparse bench --onnx mlp.onnx --density 0.05 --batch 64 --json
    """
    from tvm_serenity.sparse.execute.bench import times

    asked = subject(mlp, onnx, edges, density, seed)
    found = times(asked.net, batch, repeats)
    choice = found.run.choice
    result: dict[str, Any] = {
        "network": asked.name,
        **asked.facts(),
        "batch": batch,
        "rows": choice.rows if choice else None,
        "tile": found.run.tile,
        "staged": bool(choice and choice.staged),
        "together": choice.together if choice else 1,
        "targets": choice.targets if choice else None,
        "ours_us": round(found.ours_us, 3),
        "gflops": round(found.gflops, 3),
        "ceiling_gflops": round(found.ceiling_gflops, 3),
        "rivals_us": {name: round(us, 3) for name, us in found.rivals.items()},
        "speedup": {name: round(found.ratio(name), 3) for name in found.rivals},
        "missing": found.missing,
    }
    if json:
        show.print_json(result)
        return
    table = Table(title=asked.title(), title_justify="left", box=None)
    for column in ("", "us", "ours is faster"):
        table.add_column(column, justify="left" if not column else "right")
    table.add_row("ours", f"{found.ours_us:,.1f}", "")
    for name, us in found.rivals.items():
        table.add_row(name.replace("-", " "), f"{us:,.1f}", f"{found.ratio(name):.2f} x")
    show.console.print(table)
    share = found.gflops / found.ceiling_gflops
    show.console.print(
        f"{found.gflops:.1f} GFLOP/s, {share:.0%} of the ceiling of {found.ceiling_gflops:.1f}"
    )
    for name, reason in found.missing.items():
        show.console.print(f"{name}: {reason}")
