"""``sparse grow``: networks without temporary I/O, and the memory that they need."""

from dataclasses import dataclass
from typing import Any

from tvm_serenity.commands.sparse_network import (
    EDGES_FILE,
    MEMORY,
    SECONDS_LIMIT,
    NamedNetwork,
    NetworkOptions,
    subject,
)
from tvm_serenity.options.option import HelpGroup, Option, option
from tvm_serenity.sparse import compact_growth
from tvm_serenity.sparse.edges import write_edges
from tvm_serenity.sparse.growth import Growth, smallest_memory


@dataclass(frozen=True, kw_only=True)
class GrowOptions(NetworkOptions):
    """The options of ``sparse grow``.

    ``memory``: values of fast memory. ``neurons``: hidden neurons of the grown network, each with
    ``in_degree`` connections. ``output``: the file of the ordered connections.
    """

    memory: int = option(100, MEMORY)
    neurons: int = option(
        1000,
        Option(
            flag="--neurons",
            help="Hidden neurons of the grown network.",
            group=HelpGroup.MODEL,
            least=0,
        ),
    )
    in_degree: int = option(
        5,
        Option(
            flag="--in-degree",
            help="Connections into each hidden neuron.",
            group=HelpGroup.MODEL,
            least=1,
        ),
    )
    time_limit_s: float | None = option(None, SECONDS_LIMIT)
    output: str | None = option(None, EDGES_FILE)


@dataclass(frozen=True)
class Grown:
    """A network, and the smallest memory that was found for it."""

    network: NamedNetwork
    options: GrowOptions
    found: Growth

    @property
    def computable(self) -> bool | None:
        """Whether the memory is enough; None if that is neither shown nor refuted."""
        if self.options.memory < self.found.least:
            return False
        return True if self.found.memory <= self.options.memory else None

    def json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        return {
            "network": self.network.name,
            **self.network.facts(),
            "bounds": self.network.bounds(),
            "memory": self.options.memory,
            "computable": self.computable,
            "smallest_memory": self.found.memory,
            "least_memory": self.found.least,
            "outcome": str(self.found.outcome),
            "output": self.options.output,
        }


def grow(options: GrowOptions | None = None) -> Grown:
    """Return a given or grown network with its smallest memory without temporary I/O."""
    options = options or GrowOptions()
    if options.names_one:
        asked = subject(options)
    else:
        memory, seed = options.memory, options.seed
        net = compact_growth(memory, options.neurons, options.in_degree, seed)
        asked = NamedNetwork(f"grown for {memory}", net)
    found = smallest_memory(asked.net, options.time_limit_s, seed=options.seed)
    if options.output is not None:
        write_edges(asked.net, found.order, options.output)
    return Grown(asked, options, found)
