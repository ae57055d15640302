"""Orders without search: what other systems do, and where the searches start.

Each takes a :class:`Problem` and returns an order of its ops; ties are broken by index.
"""

import heapq
from collections import deque

from tvm_serenity.schedule.problem import Problem


def given(problem: Problem) -> list[int]:
    """Return the order the network came in."""
    return list(range(problem.count))


def kahn(problem: Problem) -> list[int]:
    """Return Kahn's order: a queue of the ops that are ready (Kahn 1962; SERENITY, section 2.3)."""
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
    """Return the order that takes the ready op with the largest immediate relief.

    Relief is what an op frees less what it allocates. An op's relief changes only when another
    reader of one of its inputs runs, so a heap with lazily renewed entries finds it.
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
        found, op = heapq.heappop(heap)
        if current.get(op) != found:
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
    """For each op, how many ops it waits for; and the ops that wait for it."""
    after: list[list[int]] = [[] for _ in range(problem.count)]
    for op, before in enumerate(problem.predecessors):
        for p in before:
            after[p].append(op)
    return [len(before) for before in problem.predecessors], after
