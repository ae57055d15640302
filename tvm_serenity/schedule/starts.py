"""Computes the start orders of the exact search, and bounds without a search."""

import heapq
from collections.abc import Iterator
from typing import Any

import numpy as np

from tvm_serenity.graph.arrays import Flags, Ints, Pairs, ints
from tvm_serenity.schedule.instance import Instance, Sets, backwards, reverse
from tvm_serenity.schedule.limits import FOREVER
from tvm_serenity.search.deadline import seconds_left

CHECKED_OPS = 4096
"""Number of ops after which a greedy order checks the deadline."""


def greedy_orders(instance: Instance, native: bool = True) -> Iterator[list[int]]:
    """Yield the on-demand order, then greedy orders, forward and backward, until the deadline.

    A greedy order always runs the ready op that frees the most bytes.
    """
    walk = instance.walk if native else None
    if walk is None:
        yield _on_demand(instance.predecessors)
    elif order := walk.on_demand(min(seconds_left(), FOREVER)):
        yield order
    for newest_first in (False, True):
        if order := _greedy(instance, newest_first, walk):
            yield order
    if not any(instance.in_place) and seconds_left() > 0:
        back, turned_walk = (instance, walk.reversed()) if walk else (reverse(instance), None)
        for newest_first in (False, True):
            if order := _greedy(back, newest_first, turned_walk):
                yield backwards(order)


def op_needs(instance: Instance) -> Ints:
    """Return the bytes that every order needs at each op: its inputs, outputs and workspace.

    The instance must not be a relaxed window, where a storage may be read before it is produced.
    """
    size = ints(instance.sizes, len(instance.sizes))
    needs = ints(instance.workspace, instance.count)
    made, read = Pairs.of(instance.producers), Pairs.of(instance.consumers)
    alone = np.bincount(made.op, minlength=len(size)) == 1  # Whether a storage has one producer.
    maker = np.full(len(size), -1)
    maker[made.op] = made.tensor
    maker[~alone] = -1
    np.add.at(needs, maker[alone], size[alone])
    also = maker[read.op] != read.tensor  # An op's own output is already counted.
    np.add.at(needs, read.tensor[also], size[read.op[also]])
    saving = [bool(storages) for storages in instance.in_place]
    if any(saving):
        needs -= np.where(saving, ints(instance.takeover, instance.count), 0)
    return needs


def forced_ops(predecessors: Sets) -> Flags:
    """Return whether each op is comparable to all others, so that every order runs it at one step.

    All earlier ops run before op v iff each has a successor up to v. All later ops run after v iff
    each has a predecessor from v on.
    """
    count, pairs = len(predecessors), Pairs.of(predecessors)
    first_after, last_before = np.full(count, count), np.full(count, -1)
    np.minimum.at(first_after, pairs.tensor, pairs.op)
    np.maximum.at(last_before, pairs.op, pairs.tensor)
    ends = np.maximum.accumulate(first_after)[:-1] <= np.arange(1, count)
    begins = np.minimum.accumulate(last_before[::-1])[::-1][1:] >= np.arange(count - 1)
    true = np.ones(min(count, 1), dtype=np.bool_)
    forced: Flags = np.concatenate([true, ends]) & np.concatenate([begins, true])
    return forced


def _on_demand(predecessors: Sets) -> list[int]:
    """Return the order that runs each op right before the first op that needs it.

    On networks that are split into bands of rows, this is row streaming.
    """
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
    """Return the order that always runs the ready op with the least growth of live bytes.

    Of equal ops, the op that became ready last or first runs. Returns an empty list if the deadline
    ends it.
    """
    if seconds_left() == 0:
        return []
    if walk is not None:
        native_order: list[int] = walk.greedy(newest_first, min(seconds_left(), FOREVER))
        return native_order
    waiting = [len(c) for c in instance.consumers]
    produced = [not p for p in instance.producers]
    blocked = [len(b) for b in instance.predecessors]
    after: list[list[int]] = [[] for _ in blocked]
    for op, before in enumerate(instance.predecessors):
        for other in before:
            after[other].append(op)
    growth = [
        sum(instance.sizes[t] for t in instance.produced[op])
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
        for t in instance.produced[op]:
            if not produced[t]:
                produced[t] = True
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
