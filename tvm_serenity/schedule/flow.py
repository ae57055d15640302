"""Computes maximum flows in plain Python, for the cuts of the search (rule R7)."""


class Flow:
    """A flow network; ``run`` computes a maximum flow by shortest augmenting paths."""

    def __init__(self, nodes: int) -> None:
        self.arcs: list[list[int]] = [[] for _ in range(nodes)]
        self.to: list[int] = []
        self.capacity: list[int | None] = []

    def node(self) -> int:
        """Add a node and return its number."""
        self.arcs.append([])
        return len(self.arcs) - 1

    def arc(self, source: int, sink: int, capacity: int | None) -> None:
        """Add an arc from ``source`` to ``sink``; a capacity of None is unbounded."""
        for node, other, residual in ((source, sink, capacity), (sink, source, 0)):
            self.arcs[node].append(len(self.to))
            self.to.append(other)
            self.capacity.append(residual)

    def run(self, source: int, sink: int) -> tuple[int, list[bool]]:
        """Return the value of a maximum flow, and the nodes on the source's side of its cut."""
        capacity, to = self.capacity, self.to
        total = 0
        while True:
            via = [-1] * len(self.arcs)
            queue = [source]
            for node in queue:
                for a in self.arcs[node]:
                    other = to[a]
                    if via[other] < 0 and other != source and capacity[a] != 0:
                        via[other] = a
                        queue.append(other)
                if via[sink] >= 0:
                    break
            if via[sink] < 0:
                return total, [v >= 0 for v in via]
            path, node = [], sink
            while node != source:
                path.append(via[node])
                node = to[via[node] ^ 1]
            pushed = min(residual for a in path if (residual := capacity[a]) is not None)
            total += pushed
            for a in path:
                for b, change in ((a, -pushed), (a ^ 1, pushed)):
                    residual = capacity[b]
                    if residual is not None:
                        capacity[b] = residual + change

    def reaching(self, sink: int) -> list[bool]:
        """Return, after ``run``, the nodes from which the residual network reaches the sink."""
        reaches = [False] * len(self.arcs)
        reaches[sink] = True
        queue = [sink]
        for node in queue:
            for a in self.arcs[node]:
                other = self.to[a]
                if not reaches[other] and self.capacity[a ^ 1] != 0:
                    reaches[other] = True
                    queue.append(other)
        return reaches
