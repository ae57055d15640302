"""The options of the ``sparse`` commands that name a network."""

from dataclasses import dataclass

from tvm_serenity.errors import InputError
from tvm_serenity.options.option import (
    SECONDS,
    Conflict,
    HelpGroup,
    Option,
    OptionGroup,
    differing,
    option,
)
from tvm_serenity.options.output import OUTPUT
from tvm_serenity.sparse import FFNN, baseline_mlp, bounds
from tvm_serenity.sparse.edges import read_edges
from tvm_serenity.sparse.perceptron import from_onnx

_ONE = "a command takes one network"
ONNX = Option(
    flag="--onnx",
    help="Perceptron that is pruned by magnitude.",
    group=HelpGroup.MODEL,
    metavar="FILE",
)
SECONDS_LIMIT = Option(
    flag="--time-limit",
    help="Stop with the best so far.",
    group=HelpGroup.SPEED,
    unit=SECONDS,
    least=0,
)
MEMORY = Option(
    flag="--memory",
    help="Values of fast memory, at least 3.",
    group=HelpGroup.MEMORY,
    metavar="M",
)
EDGES_FILE = differing(OUTPUT, help="Write the ordered connections here.")


@dataclass(frozen=True, kw_only=True)
class NetworkOptions(OptionGroup):
    """The options that name the network of a command.

    ``mlp``: a random network, WIDTHxDEPTH. ``onnx``: the file of a perceptron with constant
    weights. ``edges``: a text file of connections. ``density``: the share of connections that a
    random network has, or that remains of the perceptron (the largest weights). ``seed``: seed of
    network and search.
    """

    mlp: str | None = option(
        None,
        Option(
            flag="--mlp",
            help="Random network: DEPTH layers of WIDTH, then one output.",
            group=HelpGroup.MODEL,
            metavar="WIDTHxDEPTH",
        ),
    )
    density: float | None = option(
        None,
        Option(
            flag="--density",
            help="Share of connections, above 0, at most 1.",
            group=HelpGroup.MODEL,
            metavar="P",
            conflicts=(Conflict("edges", "a file lists its connections"),),
        ),
    )
    seed: int = option(
        0,
        Option(
            flag="--seed",
            help="Seed of network and search.",
            group=HelpGroup.MODEL,
            least=0,
            most=2**32 - 1,
        ),
    )
    onnx: str | None = option(None, differing(ONNX, conflicts=(Conflict("mlp", _ONE),)))
    edges: str | None = option(
        None,
        Option(
            flag="--edges",
            help="Text file with one connection per line: source, target, weight.",
            group=HelpGroup.MODEL,
            metavar="FILE",
            conflicts=(Conflict("mlp", _ONE), Conflict("onnx", _ONE)),
        ),
    )

    @property
    def names_one(self) -> bool:
        """Whether the options name a network."""
        return any(given is not None for given in (self.mlp, self.onnx, self.edges))


@dataclass(frozen=True)
class NamedNetwork:
    """A network with its name."""

    name: str
    net: FFNN

    def title(self) -> str:
        """Return the title of a table about the network."""
        return f"{self.name}: {self.net.connections:,} connections, {self.net.neurons:,} neurons"

    def facts(self) -> dict[str, int]:
        """Return the sizes of the network for JSON."""
        return {
            "connections": self.net.connections,
            "neurons": self.net.neurons,
            "inputs": len(self.net.inputs),
            "outputs": len(self.net.outputs),
        }

    def bounds(self) -> dict[str, int]:
        """Return the lower bounds of Theorem 1 for JSON."""
        found = bounds(self.net)
        return {"reads": found.reads, "writes": found.writes, "total": found.total}


def subject(options: NetworkOptions) -> NamedNetwork:
    """Return the network that the options name; raise :class:`InputError` unless it is one."""
    mlp, onnx, density = options.mlp, options.onnx, options.density
    if not options.names_one:
        raise InputError("choose one network: --mlp WIDTHxDEPTH, --onnx FILE or --edges FILE")
    if options.edges is not None:
        return NamedNetwork(options.edges, read_edges(options.edges))
    if density is None:
        raise InputError(f"--{'mlp' if mlp else 'onnx'} needs --density P")
    if onnx is not None:
        return NamedNetwork(f"{onnx} at {density:.3%}", from_onnx(onnx).pruned(density).net)
    assert mlp is not None
    width, _, depth = mlp.partition("x")
    if not (width.isdigit() and depth.isdigit() and int(width) and int(depth)):
        raise InputError(f"--mlp {mlp!r}: write WIDTHxDEPTH, like 500x4")
    net = baseline_mlp(int(width), int(depth), density, options.seed)
    return NamedNetwork(f"{mlp} MLP at {density:.3%}, seed {options.seed}", net)
