"""``serenity sparse bench``: a network's time against MKL, scipy and dense BLAS."""

from rich.table import Table

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.sparse import sparse_app
from tvm_serenity.commands.sparse_bench import BenchOptions, bench
from tvm_serenity.options.output import Shown


@command("bench", within=sparse_app)
def bench_command(options: BenchOptions, shown: Shown) -> None:
    """Measure a sparse network's inference: ours, MKL, scipy, dense MKL; float32, one thread.

    Ours is tuned here and now: blocks for the cache, tiles of the batch. Every
    run is compared with the exact result first. "alone" is without bias and
    activation. The ceiling is our kernel on values in the first cache, with a load
    for each multiply-add: neurons computed together share loads and can pass it.

    [dim]Examples[/dim]
      serenity sparse bench --mlp 500x4 --density 0.1
      serenity sparse bench --onnx mlp.onnx --density 0.05 --batch 64 --json
    """
    done = bench(options)
    if shown.json:
        show.print_json(done.json())
        return
    found = done.times
    table = Table(title=done.network.title(), title_justify="left", box=None)
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
