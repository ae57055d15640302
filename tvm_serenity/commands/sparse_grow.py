"""``sparse grow``: networks without temporary I/O, and the memory that takes."""

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
    """``memory``: of the network that is grown, with ``neurons`` of ``in_degree`` connections.

    ``output``: where the connections are written, in order.
    """

    memory: int = option(100, MEMORY)
    neurons: int = option(
        1000,
        Option(
            flag="--neurons",
            help="Grown, besides inputs and output.",
            group=HelpGroup.MODEL,
            least=0,
        ),
    )
    in_degree: int = option(
        5,
        Option(
            flag="--in-degree",
            help="Connections into a grown neuron.",
            group=HelpGroup.MODEL,
            least=1,
        ),
    )
    time_limit_s: float | None = option(None, SECONDS_LIMIT)
    output: str | None = option(None, EDGES_FILE)


@dataclass(frozen=True)
class Grown:
    """A network, and the least memory found for it."""

    network: NamedNetwork
    options: GrowOptions
    found: Growth

    @property
    def computable(self) -> bool | None:
        """Whether the memory is enough; None where no order was found and none is ruled out."""
        if self.options.memory < self.found.least:
            return False
        return True if self.found.memory <= self.options.memory else None

    def json(self) -> dict[str, Any]:
        """Return what JSON says of it."""
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
    """Return a network that so many values compute without temporary I/O, or examine one."""
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
