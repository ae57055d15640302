"""``serenity sparse bench``: inference time of a sparse network beside MKL, scipy and BLAS."""

from rich.table import Table

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.sparse import sparse_app
from tvm_serenity.commands.sparse_bench import BenchOptions, bench
from tvm_serenity.options.output import Shown


@command("bench", within=sparse_app)
def bench_command(options: BenchOptions, shown: Shown) -> None:
    """Measure inference of a sparse network: ours, MKL, scipy, dense MKL; float32, one thread.

    Our kernel is tuned on this machine first: cache blocks and tiles of the batch. Each output is
    compared with the exact result before timing. "alone" excludes bias and activation. The ceiling
    is the speed of our kernel on values in the L1 cache, with one load per multiply-add; neurons
    that are computed together share loads and can exceed it.

    [dim]Examples[/dim]
      serenity sparse bench --mlp 500x4 --density 0.1
      serenity sparse bench --onnx mlp.onnx --density 0.05 --batch 64 --json
    """
    done = bench(options)
    if shown.json:
        show.print_json(done.json())
        return
    times = done.times
    table = Table(title=done.network.title(), title_justify="left", box=None)
    for column in ("", "us", "speedup of ours"):
        table.add_column(column, justify="left" if not column else "right")
    table.add_row("ours", f"{times.ours_us:,.1f}", "")
    for name, us in times.baselines.items():
        table.add_row(name.replace("-", " "), f"{us:,.1f}", f"{times.ratio(name):.2f} x")
    show.console.print(table)
    share = times.gflops / times.ceiling_gflops
    show.console.print(
        f"{times.gflops:.1f} GFLOP/s, {share:.0%} of the ceiling of {times.ceiling_gflops:.1f}"
    )
    for name, reason in times.missing.items():
        show.console.print(f"{name}: {reason}")
