"""The exact search's own form of the instance, closed under what the search does to it.

Segments of an order, relaxed windows and the reversed problem are instances again. A storage has a
set of producers and a set of consumers: it becomes live when the first producer runs and dies
when the last consumer has run. No producers: live from the start. No consumers: kept to the end.
``docs/search.md`` derives what each construction guarantees.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from itertools import compress
from types import ModuleType
from typing import Any

from tvm_serenity.graph.arrays import turned
from tvm_serenity.schedule.problem import Problem

Sets = tuple[tuple[int, ...], ...]


@cache
def native_core() -> ModuleType | None:
    """The native searches, where they are installed."""
    try:
        return import_module("tvm_serenity._schedule")
    except ImportError:  # installed without a C++ compiler
        return None


@dataclass(frozen=True)
class Instance:
    """Ops 0..n-1 numbered in a valid order; equal instances have equal answers.

    ``in_place[u]``: storages that op u may take over, which saves ``takeover[u]`` bytes while u
    runs if one of them dies at u. No storage is both live from the start and kept to the end.
    """

    predecessors: Sets
    sizes: tuple[int, ...]
    producers: Sets
    consumers: Sets
    workspace: tuple[int, ...]
    in_place: Sets
    takeover: tuple[int, ...]

    @property
    def count(self) -> int:
        """The number of ops."""
        return len(self.workspace)

    @cached_property
    def made(self) -> Sets:
        """For each op, the storages of which it is a producer."""
        return turned(self.producers, self.count)

    @cached_property
    def read(self) -> Sets:
        """For each op, the storages of which it is a consumer."""
        return turned(self.consumers, self.count)

    @cached_property
    def walk(self) -> Any:
        """The native form, which computes profiles and greedy orders; None without it."""
        core = native_core()
        if core is None:
            return None
        return core.Walk(
            self.predecessors,
            self.sizes,
            self.producers,
            self.consumers,
            self.workspace,
            self.in_place,
            self.takeover,
        )

    @cached_property
    def start_bytes(self) -> int:
        """What is live before the first op."""
        return sum(s for s, p in zip(self.sizes, self.producers, strict=True) if not p)


@dataclass(frozen=True)
class OrderProfile:
    """Of an order: ``live[i]`` bytes before its step i (and at the end), ``need[i]`` during it."""

    live: tuple[int, ...]
    need: tuple[int, ...]

    @cached_property
    def peak(self) -> int:
        """The most bytes at any time."""
        return max(self.need, default=self.live[0])


def instance_of(problem: Problem) -> tuple[Instance, int]:
    """The instance of ``problem``, and the bytes that are live in every state beside it."""
    producers: Sets = tuple([() if op < 0 else (op,) for op in problem.producer])
    # What nobody reads lives during its producer alone.
    consumers: Sets = tuple(
        [
            () if kept else found or made
            for kept, found, made in zip(problem.kept, problem.consumers, producers, strict=True)
        ]
    )
    used = [bool(made or found) for made, found in zip(producers, consumers, strict=True)]
    beside = [kept and not one for kept, one in zip(problem.kept, used, strict=True)]
    base = sum(compress(problem.sizes, beside))
    in_place, takeover = problem.in_place, (0,) * problem.count
    if any(in_place):
        number = {t: i for i, t in enumerate(compress(range(len(used)), used))}
        in_place = tuple(
            tuple(number[t] for t in storages if t in number and not problem.kept[t])
            for storages in in_place
        )
        takeover = tuple(
            saved if storages else 0
            for saved, storages in zip(problem.takeover, in_place, strict=True)
        )
    instance = Instance(
        predecessors=problem.predecessors,
        sizes=tuple(compress(problem.sizes, used)),
        producers=tuple(compress(producers, used)),
        consumers=tuple(compress(consumers, used)),
        workspace=problem.workspace,
        in_place=in_place,
        takeover=takeover,
    )
    return instance, base


def profile(instance: Instance, order: Sequence[int]) -> OrderProfile:
    """The bytes of a valid order of the instance, step by step."""
    walk = instance.walk
    if walk is None:
        return profile_in_python(instance, order)
    live, need = walk.profile(order)
    return OrderProfile(tuple(live), tuple(need))


def peak_of_order(instance: Instance, order: Sequence[int]) -> int:
    """The most bytes at any time of a valid order of the instance."""
    walk = instance.walk
    if walk is None:
        return profile_in_python(instance, order).peak
    peak: int = walk.peak(order)
    return peak


def profile_in_python(instance: Instance, order: Sequence[int]) -> OrderProfile:
    """The same without the native core: its twin."""
    waiting = [len(c) for c in instance.consumers]
    made = [not p for p in instance.producers]
    live, need = [instance.start_bytes], []
    for op in order:
        now = live[-1]
        for t in instance.made[op]:
            if not made[t]:
                made[t] = True
                now += instance.sizes[t]
        credit = 0
        if any(waiting[t] == 1 for t in instance.in_place[op]):
            credit = instance.takeover[op]
        need.append(now + instance.workspace[op] - credit)
        for t in instance.read[op]:
            waiting[t] -= 1
            if waiting[t] == 0:
                now -= instance.sizes[t]
        live.append(now)
    return OrderProfile(tuple(live), tuple(need))


def segment(
    instance: Instance, order: Sequence[int], position: Sequence[int], first: int, last: int
) -> tuple[Instance, tuple[int, ...]]:
    """The instance of reordering steps ``first`` to ``last - 1`` of an order, and its op numbers.

    What is live throughout is left out: the bytes before the segment are ``start_bytes`` plus
    those. Its ops are numbered as the instance's are, so that equal cells give equal instances.
    The instance's storages must have one producer at most. All steps are the instance itself.
    """
    ops = tuple(sorted(order[first:last]))
    if len(ops) == instance.count:
        return instance, ops
    local = {op: i for i, op in enumerate(ops)}
    number: dict[int, int] = {}
    sizes: list[int] = []
    producers: list[tuple[int, ...]] = []
    consumers: list[tuple[int, ...]] = []
    for op in ops:
        for t in (*instance.made[op], *instance.read[op]):
            if t in number:
                continue
            makers, readers = instance.producers[t], instance.consumers[t]
            inside = tuple(local[p] for p in makers if p in local)
            stays = not readers or any(position[c] >= last for c in readers)
            rest = () if stays else tuple(local[c] for c in readers if c in local)
            number[t] = -1
            if inside or rest:
                number[t] = len(sizes)
                sizes.append(instance.sizes[t])
                producers.append(inside)
                consumers.append(rest)
    in_place = tuple(
        tuple(number[t] for t in instance.in_place[op] if number[t] >= 0 and consumers[number[t]])
        for op in ops
    )
    part = Instance(
        predecessors=tuple(
            tuple(local[p] for p in instance.predecessors[op] if p in local) for op in ops
        ),
        sizes=tuple(sizes),
        producers=tuple(producers),
        consumers=tuple(consumers),
        workspace=tuple(instance.workspace[op] for op in ops),
        in_place=in_place,
        takeover=tuple(
            instance.takeover[op] if taken else 0 for op, taken in zip(ops, in_place, strict=True)
        ),
    )
    return part, ops


def reverse(instance: Instance) -> Instance:
    """The instance whose orders are those of ``instance`` backwards, with equal peaks (rule R8).

    The instance must have no in-place ops: what they save depends on what has run before.
    """
    last = instance.count - 1

    def mirror(sets: Sets) -> Sets:
        return tuple(tuple(sorted(last - op for op in ops)) for ops in sets)

    return Instance(
        predecessors=backward_precedence(instance.predecessors),
        sizes=instance.sizes,
        producers=mirror(instance.consumers),
        consumers=mirror(instance.producers),
        workspace=instance.workspace[::-1],
        in_place=instance.in_place,
        takeover=instance.takeover,
    )


def backwards(order: Sequence[int]) -> list[int]:
    """Return the order of the instance that one of its reverse is, or the other way round."""
    last = len(order) - 1
    return [last - op for op in reversed(order)]


def backward_precedence(predecessors: Sets) -> Sets:
    """The precedence of the orders backwards: op u is number n-1-u, successors precede."""
    last = len(predecessors) - 1
    after = turned(predecessors, len(predecessors))
    return tuple([tuple([last - op for op in reversed(ops)]) for ops in reversed(after)])
