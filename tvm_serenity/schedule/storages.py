"""The instances on which certificates are checked, from their definitions alone."""

from collections.abc import Sequence
from typing import NamedTuple

from tvm_serenity.schedule.problem import Problem
from tvm_serenity.schedule.states import bits


class StorageLives(NamedTuple):
    """Ops 0..n-1 with all that decides an order's peak, in the order that ``Core`` takes it.

    A storage is live once one of its ``makers`` has run (none: from the start) until all of its
    ``readers`` have (none: to the end).
    """

    predecessors: Sequence[Sequence[int]]
    sizes: Sequence[int]
    makers: Sequence[Sequence[int]]
    readers: Sequence[Sequence[int]]
    workspace: Sequence[int]
    in_place: Sequence[Sequence[int]]
    takeover: Sequence[int]


def storages_of(problem: Problem) -> StorageLives:
    """The whole instance; what only its producer touches has that as its reader."""
    there = [
        t
        for t in range(len(problem.sizes))
        if problem.kept[t] or _last_readers(problem, t)  # else it is never live
    ]
    number = {t: i for i, t in enumerate(there)}
    made = [problem.producer[t] for t in there]
    return StorageLives(
        problem.predecessors,
        [problem.sizes[t] for t in there],
        [(op,) if op >= 0 else () for op in made],
        [_last_readers(problem, t) for t in there],
        problem.workspace,
        [[number[t] for t in taken if t in number] for taken in problem.in_place],
        problem.takeover,
    )


def relaxed_storages(problem: Problem, chosen: list[int]) -> StorageLives:
    """Rule R9 over any ops, from its definition (``docs/search.md``)."""
    local = {op: i for i, op in enumerate(chosen)}
    upto = [0] * problem.count  # the chosen ops that are the op or before it
    since = [0] * problem.count  # the chosen ops that are the op or after it
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
    for t, made in enumerate(problem.producer):
        readers = _last_readers(problem, t)
        starts = since[made] if made >= 0 else 0
        ends = 0
        for op in readers:
            ends |= upto[op]
        if (made >= 0 and not starts) or (readers and not ends) or (made < 0 and not readers):
            continue
        if made >= 0 and readers and made not in local and not starts & ends:
            continue
        number[t] = len(number)
        producers.append([local[made]] if made in local else list(bits(starts)))
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
    """What has run when the storage is dead: none if it is kept, its producer if nobody reads."""
    if problem.kept[storage]:
        return ()
    made = problem.producer[storage]
    return problem.consumers[storage] or ((made,) if made >= 0 else ())


def _read_after(
    problem: Problem, storage: int, op: int, upto: list[int], local: dict[int, int]
) -> bool:
    """Whether a reader of the storage always runs after ``op``, which then cannot take it over."""
    return any(c != op and upto[c] >> local[op] & 1 for c in problem.consumers[storage])
