"""The instances of the exact search, and the constructions that give further instances.

Segments of an order, relaxed windows and the reversed problem are instances too. A storage has a
set of producers and a set of consumers. It becomes live when its first producer runs, and dies when
its last consumer has run. A storage without producers is live from the start; a storage without
consumers is live to the end. ``docs/search.md`` proves the guarantee of each construction.
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
    """Return the native searches, or None if they are not installed."""
    try:
        return import_module("tvm_serenity._schedule")
    except ImportError:  # The package was installed without a C++ compiler.
        return None


@dataclass(frozen=True)
class Instance:
    """Ops 0 to n-1, numbered in a valid order, and storages with sizes in bytes.

    ``producers`` and ``consumers`` are per storage; ``predecessors`` and ``workspace`` per op.
    ``in_place[u]``: storages that op u may take over; if one of them dies at u, this saves
    ``takeover[u]`` bytes while u runs. No storage is both live from the start and live to the end.
    Equal instances have equal solutions.
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
    def produced(self) -> Sets:
        """For each op, the storages that it produces."""
        return turned(self.producers, self.count)

    @cached_property
    def read(self) -> Sets:
        """For each op, the storages that it consumes."""
        return turned(self.consumers, self.count)

    @cached_property
    def walk(self) -> Any:
        """The native form, which computes profiles and greedy orders; None without the core."""
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
        """The bytes that are live before the first op."""
        return sum(s for s, p in zip(self.sizes, self.producers, strict=True) if not p)


@dataclass(frozen=True)
class OrderProfile:
    """The profile of an order: ``live[i]`` bytes before step i, ``need[i]`` bytes during step i."""

    live: tuple[int, ...]
    need: tuple[int, ...]

    @cached_property
    def peak(self) -> int:
        """The largest live bytes at any time."""
        return max(self.need, default=self.live[0])


def instance_of(problem: Problem) -> tuple[Instance, int]:
    """Return the instance of ``problem``, and the bytes of storages that are always live.

    The instance does not include these storages.
    """
    producers: Sets = tuple([() if op < 0 else (op,) for op in problem.producer])
    # A storage without readers is live only while its producer runs.
    consumers: Sets = tuple(
        [
            () if kept else readers or makers
            for kept, readers, makers in zip(
                problem.kept, problem.consumers, producers, strict=True
            )
        ]
    )
    used = [bool(makers or last) for makers, last in zip(producers, consumers, strict=True)]
    beside = [kept and not counted for kept, counted in zip(problem.kept, used, strict=True)]
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
    """Return the profile of a valid order of the instance."""
    walk = instance.walk
    if walk is None:
        return profile_in_python(instance, order)
    live, need = walk.profile(order)
    return OrderProfile(tuple(live), tuple(need))


def peak_of_order(instance: Instance, order: Sequence[int]) -> int:
    """Return the peak of a valid order of the instance, in bytes."""
    walk = instance.walk
    if walk is None:
        return profile_in_python(instance, order).peak
    peak: int = walk.peak(order)
    return peak


def profile_in_python(instance: Instance, order: Sequence[int]) -> OrderProfile:
    """Return the profile of a valid order, computed without the native core."""
    waiting = [len(c) for c in instance.consumers]
    produced = [not p for p in instance.producers]
    live, need = [instance.start_bytes], []
    for op in order:
        now = live[-1]
        for t in instance.produced[op]:
            if not produced[t]:
                produced[t] = True
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
    """Return the instance that re-orders steps ``first`` to ``last - 1``, and its op numbers.

    Storages that are live throughout the segment are not included; their bytes are live in addition
    to the instance's. Ops are numbered in the original instance's order, so that equal cells give
    equal instances. Each storage must have at most one producer. The segment of all steps is the
    instance itself.
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
        for t in (*instance.produced[op], *instance.read[op]):
            if t in number:
                continue
            makers, readers = instance.producers[t], instance.consumers[t]
            inside = tuple(local[p] for p in makers if p in local)
            outlives = not readers or any(position[c] >= last for c in readers)
            rest = () if outlives else tuple(local[c] for c in readers if c in local)
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
    return restricted(instance, ops, sizes, producers, consumers, in_place), ops


def restricted(
    instance: Instance,
    ops: Sequence[int],
    sizes: Sequence[int],
    producers: Sequence[tuple[int, ...]],
    consumers: Sequence[tuple[int, ...]],
    in_place: Sequence[tuple[int, ...]],
) -> Instance:
    """Return the instance of ``ops`` alone, with these storages.

    Producers and consumers are indices in ``ops``; ``in_place`` lists storages for each op.
    """
    local = {op: i for i, op in enumerate(ops)}
    return Instance(
        predecessors=tuple(
            tuple(local[p] for p in instance.predecessors[op] if p in local) for op in ops
        ),
        sizes=tuple(sizes),
        producers=tuple(producers),
        consumers=tuple(consumers),
        workspace=tuple(instance.workspace[op] for op in ops),
        in_place=tuple(in_place),
        takeover=tuple(
            instance.takeover[op] if taken else 0 for op, taken in zip(ops, in_place, strict=True)
        ),
    )


def reverse(instance: Instance) -> Instance:
    """Return the instance whose orders are the reversed orders of ``instance`` (R8).

    Reversed orders have equal peaks. The instance must have no in-place ops, because their saving
    depends on the ops that have run before.
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
    """Return the reversed order, in the op numbers of the reversed instance."""
    last = len(order) - 1
    return [last - op for op in reversed(order)]


def backward_precedence(predecessors: Sets) -> Sets:
    """Return the predecessors in reversed orders: op u has number n-1-u, successors run first."""
    last = len(predecessors) - 1
    after = turned(predecessors, len(predecessors))
    return tuple([tuple([last - op for op in reversed(ops)]) for ops in reversed(after)])
