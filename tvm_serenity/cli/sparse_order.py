"""``serenity sparse order``: order the connections of a sparse network for few I/Os."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.sparse import sparse_app
from tvm_serenity.commands.sparse_network import NamedNetwork
from tvm_serenity.commands.sparse_order import SparseOrderOptions, order
from tvm_serenity.options.output import Shown
from tvm_serenity.sparse.orders import Ordered, Progress


@command("order", within=sparse_app)
def order_command(options: SparseOrderOptions, shown: Shown) -> None:
    """Order the connections of a sparse network for few reads and writes.

    Fast memory holds M values: one connection and M - 1 neurons. Every order needs at least
    W + N + S I/Os; the initial order ("two-optimal") needs at most twice the minimum. "auto" takes
    the best of all methods and improves it until the time limit.

    [dim]Examples[/dim]
      serenity sparse order --mlp 500x4 --density 0.01 --time-limit 10
      serenity sparse order --onnx mlp.onnx --density 0.05 -o ordered.txt
      serenity sparse order --edges net.txt --order anneal --policy lru --json

    Ctrl-C ends the search with the best order so far; it is printed and saved.
    """
    done = order(options, progress)
    if shown.json:
        show.print_json(done.json())
    else:
        _print(done.network, done.json(), done.found)
    if done.found.limit == "interrupt":
        show.end_interrupted("order")


def _print(asked: NamedNetwork, result: dict[str, Any], ordered: Ordered) -> None:
    least = result["bounds"]["total"]
    start = result["start"]["total"]
    rows = {
        "bound": f"{least:,} I/Os (W + N + S)",
        "start": f"{start:,}: {start / least:.4f} times the bound",
        "best": f"{ordered.total:,}: {ordered.total / least:.4f} times the bound "
        f"({ordered.traffic.reads:,} reads, {ordered.traffic.writes:,} writes)",
        "method": f"{ordered.method}, {ordered.seconds:.2f} s"
        + (", time limit" * (ordered.limit == "time")),
    }
    if "phase_bound" in result:
        rows["of this network"] = f"at least {result['phase_bound']['total']:,} I/Os"
    if result["output"]:
        rows["written to"] = str(result["output"])
    show.facts(
        f"{asked.name}: {ordered.order.size:,} connections, {asked.net.neurons:,} neurons", rows
    )


@contextmanager
def progress(asked: NamedNetwork) -> Iterator[Callable[[Progress], None] | None]:
    """Yield a function that displays the progress of a search; None without a terminal."""
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
