"""Builds the instances on which certificates are checked, directly from their definitions."""

from collections.abc import Sequence
from typing import NamedTuple

from tvm_serenity.schedule.problem import Problem
from tvm_serenity.schedule.states import bits


class StorageLives(NamedTuple):
    """Ops 0 to n-1 with everything on which the peak depends, in the argument order of ``Core``.

    A storage is live after one of its ``makers`` has run (without makers: from the start) until all
    of its ``readers`` have run (without readers: to the end).
    """

    predecessors: Sequence[Sequence[int]]
    sizes: Sequence[int]
    makers: Sequence[Sequence[int]]
    readers: Sequence[Sequence[int]]
    workspace: Sequence[int]
    in_place: Sequence[Sequence[int]]
    takeover: Sequence[int]


def storages_of(problem: Problem) -> StorageLives:
    """Return the instance of ``problem``; the producer of a storage without readers reads it."""
    live = [
        t
        for t in range(len(problem.sizes))
        if problem.kept[t] or _last_readers(problem, t)  # Other storages are never live.
    ]
    number = {t: i for i, t in enumerate(live)}
    makers = [problem.producer[t] for t in live]
    return StorageLives(
        problem.predecessors,
        [problem.sizes[t] for t in live],
        [(op,) if op >= 0 else () for op in makers],
        [_last_readers(problem, t) for t in live],
        problem.workspace,
        [[number[t] for t in taken if t in number] for taken in problem.in_place],
        problem.takeover,
    )


def relaxed_storages(problem: Problem, chosen: list[int]) -> StorageLives:
    """Return the relaxed instance over the ops ``chosen`` (rule R9 in ``docs/search.md``)."""
    local = {op: i for i, op in enumerate(chosen)}
    upto = [0] * problem.count  # Bit sets of the chosen ops that precede each op, or are it.
    since = [0] * problem.count  # Bit sets of the chosen ops that follow each op, or are it.
    for op, before in enumerate(problem.predecessors):
        upto[op] |= 1 << local[op] if op in local else 0
        for other in before:
            upto[op] |= upto[other]
    for op in range(problem.count - 1, -1, -1):
        since[op] |= 1 << local[op] if op in local else 0
        for other in problem.predecessors[op]:
            since[other] |= since[op]
    number: dict[int, int] = {}
    producers, consumers = [], []
    for t, maker in enumerate(problem.producer):
        readers = _last_readers(problem, t)
        starts = since[maker] if maker >= 0 else 0
        ends = 0
        for op in readers:
            ends |= upto[op]
        if (maker >= 0 and not starts) or (readers and not ends) or (maker < 0 and not readers):
            continue
        if maker >= 0 and readers and maker not in local and not starts & ends:
            continue
        number[t] = len(number)
        producers.append([local[maker]] if maker in local else list(bits(starts)))
        consumers.append(list(bits(ends)))
    in_place = [
        [
            number[t]
            for t in problem.in_place[op]
            if t in number and not problem.kept[t] and not _read_after(problem, t, op, upto, local)
        ]
        for op in chosen
    ]
    return StorageLives(
        [list(bits(upto[op] & ~(1 << local[op]))) for op in chosen],
        [problem.sizes[t] for t in number],
        producers,
        consumers,
        [problem.workspace[op] for op in chosen],
        in_place,
        [problem.takeover[op] if taken else 0 for op, taken in zip(chosen, in_place, strict=True)],
    )


def _last_readers(problem: Problem, storage: int) -> tuple[int, ...]:
    """Return the ops after which ``storage`` is dead: its readers, or its producer without readers.

    The result is empty if the storage is kept.
    """
    if problem.kept[storage]:
        return ()
    maker = problem.producer[storage]
    return problem.consumers[storage] or ((maker,) if maker >= 0 else ())


def _read_after(
    problem: Problem, storage: int, op: int, upto: list[int], local: dict[int, int]
) -> bool:
    """Return whether a reader of ``storage`` must run after ``op``, which prevents a takeover."""
    return any(c != op and upto[c] >> local[op] & 1 for c in problem.consumers[storage])
