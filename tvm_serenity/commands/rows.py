"""``rows``: split the operators of a network into bands of rows."""

import json as json_module
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvm_serenity.commands.models import source
from tvm_serenity.commands.progress import Progress, silent
from tvm_serenity.commands.rows_options import RowsOptions
from tvm_serenity.frontends.formats import operation
from tvm_serenity.options.model import ReadOptions
from tvm_serenity.rows.bound import rows_bound
from tvm_serenity.rows.choose import (
    Choice,
    Goal,
    at_most_in_memory,
    check_splittable,
    choose,
    curve,
    recomputed,
)
from tvm_serenity.rows.described import described as described_choice
from tvm_serenity.rows.described import point
from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.network import Network
from tvm_serenity.rows.recompute import recompute as again
from tvm_serenity.rows.split import heights_of
from tvm_serenity.rows.stream import Streaming, stream
from tvm_serenity.rows.tiles import without_between
from tvm_serenity.search.deadline import within
from tvm_serenity.system.files import write_bytes

if TYPE_CHECKING:
    from tvm_serenity.commands.sliding import SlidingResult
    from tvm_serenity.relax.rows_read import RowModule


@dataclass(frozen=True)
class RowsResult:
    """The chosen bands of a model, and the points of the curve."""

    model: str
    chosen: Choice
    points: Sequence[Streaming]
    checked: bool

    @property
    def met(self) -> bool:
        """Whether the bands keep the limits."""
        return self.chosen.met

    def json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        found = {"curve": [point(s) for s in self.points], "checked": self.checked}
        return {"model": self.model, **described_choice(self.chosen), **found}


def rows(
    model: str, options: RowsOptions | None = None, tell: Progress = silent
) -> "RowsResult | SlidingResult":
    """Return a network split into bands of rows, ordered and placed.

    With ``options.sliding``, return one step of incremental inference.
    """
    options = options or RowsOptions()
    if options.sliding is not None:
        from tvm_serenity.commands.sliding import sliding

        return sliding(model, options, tell)
    read = rows_of(model, options, options.graph_only)
    network = read if isinstance(read, Network) else read.network
    check_splittable(network)
    with within(options.time_limit_s), tell(f"rows of {model}") as line:
        limits = Limits.within(options.time_limit_s, line)
        known: dict[int, Streaming] = {}
        if options.curve or options.plot is not None:
            known = dict(curve(network, streamed=options.stream_input, limits=limits))
        chosen = _searched(read, options, limits, known)
        if options.certificate is not None:
            _certify(read, options, limits, options.certificate)
    points = list(known.values())
    if options.check:
        chosen.best.check()
    if options.plot is not None:
        from tvm_serenity.rows.figure import plot_curve

        plot_curve(network.name, points, options.plot)
    return RowsResult(model, chosen, points, options.check)


def _searched(
    read: "Network | RowModule",
    options: RowsOptions,
    limits: Limits,
    known: Mapping[int, Streaming],
) -> Choice:
    """Return the bands of the smallest arena, with recomputation if the options allow it."""
    network = read if isinstance(read, Network) else read.network
    chosen = _chosen(network, options, limits, known)
    if options.recompute is None or isinstance(read, Network):
        return chosen
    from tvm_serenity.relax.row_chains import chains, work_of

    wanted = not chosen.met or options.ram_bytes is None
    found = again(
        network,
        chains(read) if wanted else (),
        work_of(read),
        options.recompute,
        streamed=options.stream_input,
        rows=options.rows if isinstance(options.rows, int) else 1,
    )
    return recomputed(
        chosen, found, network, lambda tiles: _chosen(tiles, options, limits.of_tiles, {})
    )


def _certify(read: "Network | RowModule", options: RowsOptions, limits: Limits, path: str) -> None:
    """Write a certificate of the lower bound for all band heights to ``path``."""
    network = read if isinstance(read, Network) else read.network
    again = options.recompute is not None
    covered = any_chains(read) if again else network
    bound = rows_bound(covered, streamed=options.stream_input, limits=limits)
    claims = {**bound.certificate(), "graph_only": options.graph_only, "recompute": again}
    write_bytes(path, (json_module.dumps(claims) + "\n").encode())


def network_of(model: str, reading: ReadOptions, graph_only: bool, again: bool = False) -> Network:
    """Return the row network of a model, read from its kernels or from the file alone.

    ``again``: the network that bounds all tilings and recomputation.
    """
    read = rows_of(model, reading, graph_only)
    if again:
        return any_chains(read)
    return read if isinstance(read, Network) else read.network


def any_chains(read: "Network | RowModule") -> Network:
    """Return the network that bounds every choice of tiled chains; only kernels have chains."""
    if isinstance(read, Network):
        return read
    from tvm_serenity.relax.row_chains import chains

    return without_between(read.network, chains(read))


def rows_of(model: str, reading: ReadOptions, graph_only: bool) -> "Network | RowModule":
    """Return the row network of a model: with its kernels, or from the file alone."""
    opened = source(model, reading)
    if graph_only:
        file = opened.file()
        message = f"{model}: --graph reads only {{files}} files"
        read: Network = operation(file, "rows", message)(file)
        return read
    opened.check_operators()  # before TVM, whose import takes seconds
    from tvm_serenity.relax.pipeline import Steps, prepared
    from tvm_serenity.relax.rows_read import read_rows

    # "llvm": the kernels are not specialised for this machine
    ready = prepared(opened.module(), Steps(layout="last"), "llvm")
    return read_rows(ready.plain, model)


def _chosen(
    network: Network, options: RowsOptions, limits: Limits, known: Mapping[int, Streaming]
) -> Choice:
    """Return the chosen bands; ``known``: the points of the curve by band height."""
    goal, streamed = Goal(options.ram_bytes, options.table_bytes), options.stream_input
    if not isinstance(options.rows, int):
        return choose(network, goal, streamed=streamed, limits=limits, known=known)
    heights = heights_of(network, options.rows)
    same = (s for s in known.values() if s.banded.heights == heights)
    streaming = next(same, None) or stream(network, heights, streamed=streamed, limits=limits)
    streaming = at_most_in_memory(streaming, limits)
    return Choice(streaming, goal.met(streaming), (streaming,), streaming.seconds)
