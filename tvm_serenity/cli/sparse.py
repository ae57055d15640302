"""``serenity sparse``: the commands on sparse networks, and the network they all take."""

from dataclasses import dataclass
from typing import Annotated

import typer

from tvm_serenity.cli import app
from tvm_serenity.errors import InputError
from tvm_serenity.sparse import FFNN, baseline_mlp, bounds
from tvm_serenity.sparse.edges import read_edges
from tvm_serenity.sparse.perceptron import from_onnx

sparse_app = typer.Typer(
    name="sparse",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Sparse feed-forward networks: I/O-efficient orders, growth, execution, figures.",
)
app.add_typer(sparse_app)

Mlp = Annotated[
    str | None,
    typer.Option(metavar="WIDTHxDEPTH", help="Random: DEPTH layers of WIDTH, then one output."),
]
Onnx = Annotated[
    str | None, typer.Option(metavar="FILE", help="A perceptron, pruned by magnitude.")
]
Edges = Annotated[
    str | None, typer.Option(metavar="FILE", help="Text: source, target, weight a line.")
]
Density = Annotated[
    float | None, typer.Option(metavar="P", help="Share of connections, above 0, at most 1.")
]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of network and search.")]
Memory = Annotated[int, typer.Option(metavar="M", help="Values of fast memory, at least 3.")]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", metavar="S", help="Stop with the best so far.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Output = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write the connections in order."),
]


@dataclass(frozen=True)
class NamedNetwork:
    """A network and what to call it."""

    name: str
    net: FFNN

    def title(self) -> str:
        """What heads a table about it."""
        return f"{self.name}: {self.net.connections:,} connections, {self.net.neurons:,} neurons"

    def facts(self) -> dict[str, int]:
        """Its sizes, for the JSON."""
        return {
            "connections": self.net.connections,
            "neurons": self.net.neurons,
            "inputs": len(self.net.inputs),
            "outputs": len(self.net.outputs),
        }

    def bounds(self) -> dict[str, int]:
        """Theorem 1's lower bounds, for the JSON."""
        found = bounds(self.net)
        return {"reads": found.reads, "writes": found.writes, "total": found.total}


def subject(
    mlp: str | None, onnx: str | None, edges: str | None, density: float | None, seed: int
) -> NamedNetwork:
    """Return the one network that is asked for."""
    if sum(given is not None for given in (mlp, onnx, edges)) != 1:
        raise InputError("choose one network: --mlp WIDTHxDEPTH, --onnx FILE or --edges FILE")
    if edges is not None:
        if density is not None:
            raise InputError("--density goes with --mlp or --onnx")
        return NamedNetwork(edges, read_edges(edges))
    if density is None:
        raise InputError(f"--{'mlp' if mlp else 'onnx'} needs --density P")
    if onnx is not None:
        return NamedNetwork(f"{onnx} at {density:.3%}", from_onnx(onnx).pruned(density).net)
    assert mlp is not None
    width, _, depth = mlp.partition("x")
    if not (width.isdigit() and depth.isdigit() and int(width) and int(depth)):
        raise InputError(f"--mlp {mlp!r}: write WIDTHxDEPTH, like 500x4")
    net = baseline_mlp(int(width), int(depth), density, seed)
    return NamedNetwork(f"{mlp} MLP at {density:.3%}, seed {seed}", net)
