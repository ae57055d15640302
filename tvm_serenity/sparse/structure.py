"""Computes levels, cycles and components of a graph, given as arrays of sources and targets."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]


def levels(neurons: int, sources: Ints, targets: Ints) -> Ints:
    """Return the length of the longest path to each neuron, or -1 for neurons after a cycle."""
    first, follow = _rows(neurons, sources, targets)
    missing = np.bincount(targets, minlength=neurons)
    level = np.full(neurons, -1, dtype=np.int32)
    front = np.flatnonzero(missing == 0)
    depth = 0
    while len(front):
        level[front] = depth
        depth += 1
        after, counts = np.unique(_gather(first, follow, front), return_counts=True)
        missing[after] -= counts
        front = after[missing[after] == 0]
    return level


def reached(neurons: int, sources: Ints, targets: Ints, start: Ints) -> NDArray[np.bool_]:
    """Return a mask of the neurons that are reachable from ``start``."""
    first, follow = _rows(neurons, sources, targets)
    seen = np.zeros(neurons, dtype=bool)
    front = np.unique(start).astype(np.int64)
    while len(front):
        seen[front] = True
        after = np.unique(_gather(first, follow, front)).astype(np.int64)
        front = after[~seen[after]]
    return seen


def a_cycle(neurons: int, sources: Ints, targets: Ints) -> list[int]:
    """Return the neurons of a cycle in order, from its smallest number on; a cycle must exist."""
    stuck = levels(neurons, sources, targets) < 0
    before = {}
    for s, t in zip(sources.tolist(), targets.tolist(), strict=True):
        if stuck[s] and stuck[t]:
            before[t] = s  # A neuron on or after a cycle waits for another such neuron.
    path = [int(np.flatnonzero(stuck)[0])]
    seen = {path[0]: 0}
    while (step := before[path[-1]]) not in seen:
        seen[step] = len(path)
        path.append(step)
    cycle = path[seen[step] :][::-1]
    least = cycle.index(min(cycle))
    return cycle[least:] + cycle[:least]


def parts(neurons: int, sources: Ints, targets: Ints) -> Ints:
    """Return the number of each neuron's connected component, ignoring directions."""
    tails, heads = np.concatenate([sources, targets]), np.concatenate([targets, sources])
    first, follow = _rows(neurons, tails, heads)
    part = np.full(neurons, -1, dtype=np.int32)
    number = 0
    for start in range(neurons):
        if part[start] >= 0:
            continue
        front = np.array([start])
        while len(front):
            part[front] = number
            after = np.unique(_gather(first, follow, front))
            front = after[part[after] < 0]
        number += 1
    return part


def _rows(neurons: int, sources: Ints, targets: Ints) -> tuple[NDArray[np.int64], Ints]:
    """Return the targets of each source as a compressed sparse matrix: row starts and targets."""
    first = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=neurons))])
    return first, targets[np.argsort(sources, kind="stable")]


def _gather(first: NDArray[np.int64], follow: Ints, rows: NDArray[np.int64]) -> Ints:
    """Return the concatenated entries of ``rows``."""
    counts = first[rows + 1] - first[rows]
    begins = np.repeat(first[rows] - np.cumsum(counts) + counts, counts)
    return follow[begins + np.arange(len(begins))]
