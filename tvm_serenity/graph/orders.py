"""Orders of a graph's operators."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.graph.arrays import ints
from tvm_serenity.graph.network import Graph


def is_order(graph: Graph, order: Sequence[int]) -> bool:
    """Return whether ``order`` has each op once, after all its predecessors."""
    count = len(graph.ops)
    if isinstance(order, range) and order == range(count):
        return True  # The given order was checked when the graph was created.
    if len(order) != count or not all(issubclass(kind, int) for kind in set(map(type, order))):
        return False
    listed = ints(order, count)
    if count and (listed.min() < 0 or listed.max() >= count):
        return False
    position = np.full(count, -1, dtype=np.int64)
    position[listed] = np.arange(count)
    if count and position.min() < 0:
        return False
    before, after = graph.waits()
    return bool((position[before] < position[after]).all())


def complete_order(graph: Graph, partial: Sequence[int]) -> tuple[int, ...]:
    """Return ``partial`` with each missing op inserted just before the first op that needs it.

    Missing ops that no op needs come last. ``partial`` must be part of a topological order.
    """
    if len(partial) == len(graph.ops):
        return tuple(partial)
    listed = set(partial)
    done: set[int] = set()
    result: list[int] = []
    for op in [*partial, *(i for i in range(len(graph.ops)) if i not in listed)]:
        stack = [op] if op not in done else []
        while stack:
            missing = [
                p for p in graph.predecessors[stack[-1]] if p not in done and p not in listed
            ]
            if missing:
                stack.append(missing[0])
            else:
                done.add(stack[-1])
                result.append(stack.pop())
    return tuple(result)
