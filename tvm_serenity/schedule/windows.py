"""Relaxed windows: instances over some ops, whose least peak is a lower bound (rule R9)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.graph.arrays import Ints, ints
from tvm_serenity.schedule.instance import Instance, restricted
from tvm_serenity.schedule.states import bits

REACH = 2
"""Number of window lengths before and after a window in which dependencies are followed."""


@dataclass(frozen=True)
class Lives:
    """For each storage, the steps of its last producer (``made``) and last consumer (``last``).

    ``made`` is -1 if the storage is live from the start; ``last`` is the number of steps if it is
    kept.
    """

    made: Ints
    last: Ints


def lives_of(instance: Instance, position: Sequence[int]) -> Lives:
    """Return the live ranges of storages, given the step (``position``) of each op."""
    makers, readers = instance.producers, instance.consumers
    count, end = len(makers), len(position)
    return Lives(
        ints((max((position[op] for op in ops), default=-1) for ops in makers), count),
        ints((max((position[op] for op in ops), default=end) for ops in readers), count),
    )


def window(
    instance: Instance, order: Sequence[int], lives: Lives, first: int, last: int
) -> tuple[Instance, tuple[int, ...]]:
    """Return the relaxed instance of steps ``first`` to ``last - 1``, and its op numbers.

    Its least peak is at most the least peak of ``instance``. In a relaxed instance, a storage
    becomes live when an op that follows its producer runs, and dies when all ops that precede its
    consumers have run. The instance has a storage only if its producer is in the window, if an op
    both follows the producer and precedes a consumer, or if the storage is live from the start or
    to the end. Without this condition the bound is wrong (``docs/search.md``, trap a). Each storage
    of ``instance`` must have at most one producer.
    """
    ops = tuple(sorted(order[first:last]))
    local = {op: i for i, op in enumerate(ops)}
    reach = REACH * (last - first) + 64
    storages = _storages(instance, lives, ops, first)
    after = _after_producers(instance, [*order[max(0, first - reach) : first], *ops], storages)
    before = _before_consumers(instance, [*ops, *order[last : last + reach]], storages)
    starts, ends = _ends(instance, ops, after, before)

    number: dict[int, int] = {}
    producers: list[tuple[int, ...]] = []
    consumers: list[tuple[int, ...]] = []
    within = 0
    for op in ops:
        within |= after[op] & before[op]
    for index, t in enumerate(storages):
        makers, readers = instance.producers[t], instance.consumers[t]
        inside = tuple(op for op in makers if op in local)
        first_ops = inside or (starts.get(index, ()) if makers else ())
        last_ops = ends.get(index, ()) if readers else ()
        if (makers and not first_ops) or (readers and not last_ops):
            continue
        if makers and readers and not inside and not within >> index & 1:
            continue
        number[t] = len(number)
        producers.append(tuple(local[op] for op in first_ops))
        consumers.append(tuple(local[op] for op in last_ops))
    in_place = tuple(
        tuple(number[t] for t in instance.in_place[op] if t in number and i in consumers[number[t]])
        for i, op in enumerate(ops)
    )
    sizes = [instance.sizes[t] for t in number]
    return restricted(instance, ops, sizes, producers, consumers, in_place), ops


def _storages(instance: Instance, lives: Lives, ops: Sequence[int], first: int) -> list[int]:
    """Return the storages that ``ops`` touch or that are live at step ``first``."""
    touched = {t for op in ops for t in (*instance.produced[op], *instance.read[op])}
    touched.update(np.flatnonzero((lives.made < first) & (lives.last >= first)).tolist())
    return sorted(touched)


def _after_producers(
    instance: Instance, ops: Iterable[int], storages: Sequence[int]
) -> dict[int, int]:
    """Return, for each op, a bit set of the storages whose producer precedes or is the op."""
    index = {t: i for i, t in enumerate(storages)}
    after: dict[int, int] = {}
    for op in ops:
        mask = 0
        for other in instance.predecessors[op]:
            mask |= after.get(other, 0)
        for t in (*instance.produced[op], *instance.read[op]):
            if t in index:
                mask |= 1 << index[t]
        after[op] = mask
    return after


def _before_consumers(
    instance: Instance, ops: Sequence[int], storages: Sequence[int]
) -> dict[int, int]:
    """Return, for each op, a bit set of the storages with a consumer that follows or is the op."""
    index = {t: i for i, t in enumerate(storages)}
    before = dict.fromkeys(ops, 0)
    for op in reversed(ops):
        mask = before[op]
        for t in instance.read[op]:
            if t in index:
                mask |= 1 << index[t]
        before[op] = mask
        for other in instance.predecessors[op]:
            if other in before:
                before[other] |= mask
    return before


def _ends(
    instance: Instance, ops: Sequence[int], after: dict[int, int], before: dict[int, int]
) -> tuple[dict[int, tuple[int, ...]], dict[int, tuple[int, ...]]]:
    """Return, for each storage, the first ops after its producer and the last before consumers."""
    starts: dict[int, list[int]] = {}
    ends: dict[int, list[int]] = {}
    # Per op, the storages with a consumer after one of the op's successors in the window.
    later = dict.fromkeys(ops, 0)
    for op in ops:
        known = 0
        for other in instance.predecessors[op]:
            if other in later:
                known |= after[other]
                later[other] |= before[op]
        for i in bits(after[op] & ~known):
            starts.setdefault(i, []).append(op)
    for op in ops:
        for i in bits(before[op] & ~later[op]):
            ends.setdefault(i, []).append(op)
    return {i: tuple(o) for i, o in starts.items()}, {i: tuple(o) for i, o in ends.items()}
