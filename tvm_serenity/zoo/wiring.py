"""Random directed acyclic graphs for the wiring of networks (Xie et al., ICCV 2019, section 3.2).

A generator of networkx creates an undirected graph. Each edge is then directed from the node of
lower index to the node of higher index.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tvm_serenity.errors import InputError

MAX_EDGES = 100_000
_TRIES = 100
_DEFAULT_P = {"ws": 0.75, "er": 0.2, "ba": 0.0}  # Xie et al., section 4.1


@dataclass(frozen=True)
class Wiring:
    """The parameters of a random graph of ``n`` nodes.

    ``model`` "ws": Watts-Strogatz, a ring in which each node has ``k`` neighbours, and each edge is
    rewired with probability ``p``. "er": Erdos-Renyi, each edge exists with probability ``p``; the
    graph is drawn again until it is connected. "ba": Barabasi-Albert, each new node is joined to
    ``m`` others. ``p`` None: the paper's value.
    """

    n: int = 32
    model: str = "ws"
    k: int = 4
    p: float | None = None
    m: int = 5

    def predecessors(self, seed: int) -> list[list[int]]:
        """Return, for each node, its predecessors, ascending; they all have a lower index.

        Raises :class:`InputError` if the parameters give no connected graph of at most
        ``MAX_EDGES`` edges.
        """
        self._check()
        predecessors: list[list[int]] = [[] for _ in range(self.n)]
        for a, b in self._draw(random.Random(seed)).edges:
            predecessors[max(a, b)].append(min(a, b))
        return [sorted(nodes) for nodes in predecessors]

    def _probability(self) -> float:
        return _DEFAULT_P[self.model] if self.p is None else self.p

    def _check(self) -> None:
        if self.model == "ws" and not 2 <= self.k < self.n:
            raise InputError(
                f"k={self.k}: a ws graph of {self.n} nodes needs k from 2 to n - 1 = {self.n - 1}"
            )
        if self.model == "ba" and not self.m < self.n:
            raise InputError(
                f"m={self.m}: a ba graph of {self.n} nodes needs m from 1 to n - 1 = {self.n - 1}"
            )
        edges = {
            "ws": self.n * (self.k // 2),
            "er": self.n * (self.n - 1) / 2 * self._probability(),
            "ba": (self.n - self.m) * self.m,
        }[self.model]
        if edges > MAX_EDGES:
            raise InputError(
                f"the random graph would have about {edges:.0f} edges, more than the limit of "
                f"{MAX_EDGES}; lower n, k, p or m"
            )

    def _draw(self, rng: random.Random) -> Any:
        import networkx as nx

        if self.model == "ba":
            return nx.barabasi_albert_graph(self.n, self.m, seed=rng)
        for _ in range(_TRIES):
            if self.model == "ws":
                graph = nx.watts_strogatz_graph(self.n, self.k, self._probability(), seed=rng)
            else:
                graph = nx.gnp_random_graph(self.n, self._probability(), seed=rng)
            if nx.is_connected(graph):
                return graph
        raise InputError(
            f"{_TRIES} random {self.model} graphs were not connected; raise k or p, or lower n"
        )
