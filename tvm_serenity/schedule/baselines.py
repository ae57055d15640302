"""Orders without search: the orders of other systems, and the starting points of the searches.

Each function takes a :class:`Problem` and returns an order of its ops. Ties are broken by index.
"""

import heapq
from collections import deque

from tvm_serenity.schedule.problem import Problem


def given(problem: Problem) -> list[int]:
    """Return the given order."""
    return list(range(problem.count))


def kahn(problem: Problem) -> list[int]:
    """Return Kahn's order: ready ops run first in, first out (Kahn 1962; SERENITY, section 2.3)."""
    waiting, after = _waiting(problem)
    ready = deque(op for op in range(problem.count) if waiting[op] == 0)
    order = []
    while ready:
        order.append(ready.popleft())
        for op in after[order[-1]]:
            waiting[op] -= 1
            if waiting[op] == 0:
                ready.append(op)
    return order


def dfs(problem: Problem) -> list[int]:
    """Return a depth-first order: the op that became ready last runs next."""
    waiting, after = _waiting(problem)
    ready = [op for op in reversed(range(problem.count)) if waiting[op] == 0]
    order = []
    while ready:
        order.append(ready.pop())
        for op in reversed(after[order[-1]]):
            waiting[op] -= 1
            if waiting[op] == 0:
                ready.append(op)
    return order


def greedy(problem: Problem) -> list[int]:
    """Return the order that always runs the ready op with the largest immediate relief.

    The relief of an op is the number of bytes that it frees less the bytes that it allocates. The
    relief changes only when another reader of one of the op's inputs runs, so a heap whose entries
    are updated lazily is sufficient.
    """
    waiting, after = _waiting(problem)
    readers = [len(c) for c in problem.consumers]

    def cost(op: int) -> int:
        freed = sum(
            problem.sizes[t] for t in problem.inputs[op] if readers[t] == 1 and not problem.kept[t]
        )
        dead_end = sum(
            problem.sizes[t]
            for t in problem.outputs[op]
            if not problem.consumers[t] and not problem.kept[t]
        )
        return problem.alloc[op] - freed - dead_end

    heap = [(cost(op), op) for op in range(problem.count) if waiting[op] == 0]
    heapq.heapify(heap)
    current = {op: c for c, op in heap}
    order: list[int] = []
    while heap:
        known_cost, op = heapq.heappop(heap)
        if current.get(op) != known_cost:
            continue
        del current[op]
        order.append(op)
        changed = []
        for t in problem.inputs[op]:
            readers[t] -= 1
            if readers[t] == 1:
                changed += [c for c in problem.consumers[t] if c in current]
        for other in after[op]:
            waiting[other] -= 1
            if waiting[other] == 0:
                changed.append(other)
        for other in dict.fromkeys(changed):
            current[other] = cost(other)
            heapq.heappush(heap, (current[other], other))
    return order


def _waiting(problem: Problem) -> tuple[list[int], list[list[int]]]:
    """Return the number of predecessors of each op, and the list of its successors."""
    after: list[list[int]] = [[] for _ in range(problem.count)]
    for op, before in enumerate(problem.predecessors):
        for p in before:
            after[p].append(op)
    return [len(before) for before in problem.predecessors], after
