"""Orders to start the exact search from, and what needs no search to be proved."""

import heapq
from collections.abc import Iterator, Sequence
from typing import Any

from tvm_serenity.deadline import seconds_left
from tvm_serenity.schedule.instance import Instance, Sets, backwards, reverse, turned

CHECKED_OPS = 4096
"""After so many ops a greedy order looks at the clock."""


def greedy_orders(instance: Instance, native: bool = True) -> Iterator[list[int]]:
    """On demand; then always the ready op which frees most, forward and backward.

    Ends where the deadline is past.
    """
    yield _on_demand(instance.predecessors)
    walk = instance.walk if native else None
    for newest_first in (False, True):
        if order := _greedy(instance, newest_first, walk):
            yield order
    if not any(instance.in_place) and seconds_left() > 0:
        back, turned_walk = (instance, walk.reversed()) if walk else (reverse(instance), None)
        for newest_first in (False, True):
            if order := _greedy(back, newest_first, turned_walk):
                yield backwards(order)


def op_needs(instance: Instance) -> list[int]:
    """For each op, bytes that every order needs at it: what it makes, reads and scratches.

    Not for relaxed windows, where a storage may count as read before it is made.
    """
    needs = []
    for op in range(instance.count):
        made = [t for t in instance.made[op] if len(instance.producers[t]) == 1]
        touched = sum(instance.sizes[t] for t in {*made, *instance.read[op]})
        credit = instance.takeover[op] if instance.in_place[op] else 0
        needs.append(touched + instance.workspace[op] - credit)
    return needs


def forced_ops(predecessors: Sets) -> list[bool]:
    """Which ops have the same place in every order: those that are comparable to all others."""
    last = len(predecessors) - 1
    after_all = _only_ends(predecessors)
    before_all = _only_ends(turned(predecessors))
    return [after_all[op] and before_all[last - op] for op in range(last + 1)]


def _only_ends(predecessors: Sequence[Sequence[int]]) -> list[bool]:
    """Which ops come after all that are numbered lower.

    That is so iff the op is the only one without a successor among those up to it.
    """
    is_end = [True] * len(predecessors)
    ends, result = 0, []
    for before in predecessors:
        ends += 1
        for other in before:
            ends -= is_end[other]
            is_end[other] = False
        result.append(ends == 1)
    return result


def _on_demand(predecessors: Sets) -> list[int]:
    """Every op right before the first one that needs it: streams through networks cut in rows."""
    used = {before for ops in predecessors for before in ops}
    done = [False] * len(predecessors)
    order: list[int] = []
    for end in range(len(predecessors)):
        stack = [] if end in used else [(end, iter(predecessors[end]))]
        while stack:
            op, rest = stack[-1]
            missing = next((before for before in rest if not done[before]), None)
            if missing is not None:
                stack.append((missing, iter(predecessors[missing])))
                continue
            stack.pop()
            done[op] = True
            order.append(op)
    return order


def _greedy(instance: Instance, newest_first: bool, walk: Any) -> list[int]:
    """Least growth of the live bytes first, then the op that became ready last or first.

    Empty where the deadline comes first.
    """
    if seconds_left() == 0:
        return []
    if walk is not None:
        found: list[int] = walk.greedy(newest_first, min(seconds_left(), 1e9))
        return found
    waiting = [len(c) for c in instance.consumers]
    made = [not p for p in instance.producers]
    blocked = [len(b) for b in instance.predecessors]
    after: list[list[int]] = [[] for _ in blocked]
    for op, before in enumerate(instance.predecessors):
        for other in before:
            after[other].append(op)
    growth = [
        sum(instance.sizes[t] for t in instance.made[op])
        - sum(instance.sizes[t] for t in instance.read[op] if waiting[t] == 1)
        for op in range(instance.count)
    ]
    done = [False] * instance.count
    stamp = 0
    ready: list[tuple[int, int, int]] = []

    def push(op: int) -> None:
        nonlocal stamp
        stamp += 1
        heapq.heappush(ready, (growth[op], -stamp if newest_first else op, op))

    for op, count in enumerate(blocked):
        if count == 0:
            push(op)
    order: list[int] = []
    while ready:
        value, _, op = heapq.heappop(ready)
        if done[op] or value != growth[op]:
            continue
        done[op] = True
        order.append(op)
        if len(order) % CHECKED_OPS == 0 and seconds_left() == 0:
            return []
        for t in instance.made[op]:
            if not made[t]:
                made[t] = True
                for other in instance.producers[t]:
                    if other != op and not done[other]:
                        growth[other] -= instance.sizes[t]
                        if blocked[other] == 0:
                            push(other)
        for t in instance.read[op]:
            waiting[t] -= 1
            if waiting[t] == 1:
                other = next(c for c in instance.consumers[t] if not done[c])
                growth[other] -= instance.sizes[t]
                if blocked[other] == 0:
                    push(other)
        for other in after[op]:
            blocked[other] -= 1
            if blocked[other] == 0:
                push(other)
    return order
