"""Random directed acyclic graphs for the wiring of networks (Xie et al., ICCV 2019, section 3.2).

Each graph is an undirected graph of networkx' generators, with every edge directed from its lower
to its higher node.
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
    """A random graph: ``model`` "ws" (k, p), "er" (p) or "ba" (m), of ``n`` nodes.

    ws: Watts-Strogatz, a ring of ``k`` neighbours, each edge rewired with probability ``p``; er:
    Erdos-Renyi, each edge exists with probability ``p``, drawn again until connected; ba:
    Barabasi-Albert, each new node joined to ``m`` others. ``p`` None: the paper's choice.
    """

    n: int = 32
    model: str = "ws"
    k: int = 4
    p: float | None = None
    m: int = 5

    def predecessors(self, seed: int) -> list[list[int]]:
        """Return, for every node, the nodes with an edge to it, ascending, all of lower index.

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
            raise InputError(f"k={self.k}: a ws graph of {self.n} nodes needs k from 2 to n - 1")
        if self.model == "ba" and not self.m < self.n:
            raise InputError(f"m={self.m}: a ba graph of {self.n} nodes needs m from 1 to n - 1")
        edges = {
            "ws": self.n * (self.k // 2),
            "er": self.n * (self.n - 1) / 2 * self._probability(),
            "ba": (self.n - self.m) * self.m,
        }[self.model]
        if edges > MAX_EDGES:
            raise InputError(
                f"about {edges:.0f} edges are too many; a random graph may have up to {MAX_EDGES}"
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
