"""Live ranges from conflicts: for planners that are told only who may not share a byte with whom.

The conflicts of buffers that each live for a stretch of time form an interval graph. Sweeps of a
lexicographic breadth-first search, each breaking ties by the one before, lead to an order in which
the later neighbours of every vertex follow it without a gap (Corneil, Olariu and Stewart, The
LBFS structure and recognition of interval graphs, 2009). A buffer then lives from its own place to
that of its last neighbour.
"""

from collections.abc import Collection, Sequence

SWEEPS = 12


def are_exact(conflicts: Sequence[Collection[int]], ranges: Sequence[tuple[int, int]]) -> bool:
    """Whether no more pairs of ``ranges`` overlap than conflict."""
    return 2 * _overlaps(ranges) == sum(map(len, conflicts))


def intervals_of(conflicts: Sequence[Collection[int]]) -> list[tuple[int, int]]:
    """Return for each vertex a half-open range of steps; ranges of neighbours overlap.

    Where ``conflicts`` is an interval graph, those of others do not: nothing is lost. On any other
    graph some that need not may overlap: safe, at some cost.
    """
    neighbours = [set(c) - {v} for v, c in enumerate(conflicts)]
    for v, c in enumerate(neighbours):
        for other in c:
            neighbours[other].add(v)
    order = list(range(len(neighbours)))
    best, fewest = _ranges(neighbours, order), None
    for _ in range(SWEEPS):
        order = _sweep(neighbours, order)
        ranges = _ranges(neighbours, order)
        extra = _overlaps(ranges) - sum(map(len, neighbours)) // 2
        if fewest is None or extra < fewest:
            best, fewest = ranges, extra
        if extra == 0:
            break
    return best


def _sweep(neighbours: Sequence[set[int]], before: Sequence[int]) -> list[int]:
    """A lexicographic search that breaks ties for what came last in the sweep before."""
    classes = [list(reversed(before))] if before else []
    order = []
    while classes:
        vertex = classes[0].pop(0)
        order.append(vertex)
        split = []
        for members in classes:
            near = [v for v in members if v in neighbours[vertex]]
            far = [v for v in members if v not in neighbours[vertex]]
            split += [part for part in (near, far) if part]
        classes = split
    return order


def _ranges(neighbours: Sequence[set[int]], order: Sequence[int]) -> list[tuple[int, int]]:
    place = {v: i for i, v in enumerate(order)}
    return [
        (place[v], max([place[v], *(place[n] for n in near)]) + 1)
        for v, near in enumerate(neighbours)
    ]


def _overlaps(ranges: Sequence[tuple[int, int]]) -> int:
    """How many pairs of ranges overlap."""
    starts = sorted(start for start, _ in ranges)
    stops = sorted(stop for _, stop in ranges)
    count, ended = 0, 0
    for begun, start in enumerate(starts):
        while stops[ended] <= start:
            ended += 1
        count += begun - ended
    return count
