"""Computes live ranges from conflicts, for callers that know only which buffers must be disjoint.

If each buffer has a single live range, the conflicts are an interval graph. Several sweeps of a
lexicographic breadth-first search, each of which breaks ties by the previous sweep, give an order
in which the later neighbours of each vertex follow it without a gap (Corneil, Olariu and Stewart,
The LBFS structure and recognition of interval graphs, 2009). A buffer's live range is then from its
own position to the position of its last neighbour.
"""

from collections.abc import Collection, Sequence

SWEEPS = 12


def are_exact(conflicts: Sequence[Collection[int]], ranges: Sequence[tuple[int, int]]) -> bool:
    """Return whether two ranges overlap if and only if their buffers conflict."""
    return 2 * _overlaps(ranges) == sum(map(len, conflicts))


def intervals_of(conflicts: Sequence[Collection[int]]) -> list[tuple[int, int]]:
    """Return a half-open range of steps for each buffer, such that conflicting ranges overlap.

    If ``conflicts`` is an interval graph, no other ranges overlap. Otherwise some other ranges
    overlap too, which is correct but may need more memory.
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
    """Return a lexicographic breadth-first order; ties go to the last in the order ``before``."""
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
    """Return the number of pairs of ranges that overlap."""
    starts = sorted(start for start, _ in ranges)
    stops = sorted(stop for _, stop in ranges)
    count, ended = 0, 0
    for begun, start in enumerate(starts):
        while stops[ended] <= start:
            ended += 1
        count += begun - ended
    return count
