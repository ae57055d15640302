"""Live ranges, the live profile and the peak of a graph under an order.

Steps number the operators of the order from 0. A live range is half open. A graph input is live
from step 0 to its last reader, a graph output to the last step, any other tensor from its producer
to its last reader (SERENITY, section 3.1; Liberis and Lane, section 2.1). A view extends the range
of its source. An in-place operator continues the range of the storage that it takes over. Workspace
is a range of one step. Where a result may overlap a dying operand, the profile subtracts the
largest saving; the placement decides how much of it is realised.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice, repeat
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph, Op, is_order
from tvm_serenity.graph.arrays import Flags, Ints, distinct, ints


class LiveRange(NamedTuple):
    """Bytes that stay allocated from step ``start`` to before step ``stop``.

    ``tensors`` are all tensors in this storage: the first one, its views, and the results that
    in-place operators write there. A workspace range has no tensors; ``workspace_of`` is the index
    of its op.
    """

    name: str
    size_bytes: int
    start: int
    stop: int
    tensors: tuple[int, ...]
    workspace_of: int | None = None


class ProfileStep(NamedTuple):
    """One step of the profile: the op that runs and the live bytes during it."""

    op: int
    live_bytes: int


@dataclass(frozen=True)
class Profile:
    """The live profile of an order: live bytes at each step, and the step of the peak."""

    ranges: tuple[LiveRange, ...]
    steps: tuple[ProfileStep, ...]
    peak_bytes: int
    peak_step: int | None

    @property
    def peak_ranges(self) -> tuple[LiveRange, ...]:
        """The ranges that are live at the peak, largest first."""
        if self.peak_step is None:
            return ()
        return largest_first(self.ranges, self.peak_step)

    def live_at(self, step: int) -> tuple[int, ...]:
        """Return the indices of the ranges that are live at ``step``, ascending."""
        return tuple(i for i, r in enumerate(self.ranges) if r.start <= step < r.stop)

    def live_sets(self) -> Iterator[tuple[int, ...]]:
        """Yield, for each step, the indices of its live ranges, ascending.

        The results together hold as many indices as the ranges hold steps.
        """
        comes: list[list[int]] = [[] for _ in self.steps]
        for index, live_range in enumerate(self.ranges):
            if live_range.start < min(live_range.stop, len(self.steps)):
                comes[live_range.start].append(index)
        live: list[int] = []
        for step, new in enumerate(comes):
            live = sorted([i for i in live if self.ranges[i].stop > step] + new)
            yield tuple(live)


def largest_first(ranges: Sequence[LiveRange], step: int) -> tuple[LiveRange, ...]:
    """Return the ranges that are live at ``step``, largest first."""
    live = (live_range for live_range in ranges if live_range.start <= step < live_range.stop)
    return tuple(sorted(live, key=lambda r: (-r.size_bytes, r.start, r.name)))


def live_ranges(graph: Graph, order: Sequence[int] | None = None) -> tuple[LiveRange, ...]:
    """Return the live ranges of ``graph`` under ``order`` (default: the given order).

    Raises :class:`InputError` if ``order`` is not a topological order of all ops.
    """
    return _ranges_of(graph, _lives(graph, order))


@dataclass(frozen=True, eq=False)
class OrderPeak:
    """The first step with the largest live memory, its op, and the ranges live there.

    For many ranges, ``sizes`` and a few names take much less time than ``ranges``.
    """

    size_bytes: int
    step: int
    op: int
    graph: Graph
    lives: "_Lives"  # the ranges of this step only
    place: Ints  # indices into those ranges (tensors, then workspace), largest first

    @property
    def sizes(self) -> Ints:
        """Bytes of each range, largest first."""
        return self.lives.sizes(self.graph)[self.place]

    @cached_property
    def ranges(self) -> tuple[LiveRange, ...]:
        """The ranges that are live, largest first."""
        ranges = _ranges_of(self.graph, self.lives)
        return tuple(ranges[place] for place in self.place.tolist())

    @property
    def workspace(self) -> Flags:
        """Whether each range is workspace."""
        return self.place >= len(self.lives.head)

    def holding(self, storages: Iterable[int]) -> Flags:
        """Return, for each range, whether it holds any of ``storages``."""
        first = {root: head for head, chain in self.lives.chains.items() for root in chain}
        heads = ints(first.get(root, root) for root in storages)
        return np.append(np.isin(self.lives.head, heads), self.lives.scratch_op < 0)[self.place]

    def name(self, index: int) -> str:
        """Return the name of the range at ``index``."""
        return self.lives.name(self.graph, int(self.place[index]))


def peak_of(graph: Graph, order: Sequence[int] | None = None) -> OrderPeak:
    """Return the peak of an order of at least one op (default: the given order)."""
    order = range(len(graph.ops)) if order is None else order
    lives = _lives(graph, order)
    needs = _needs(graph, order, lives)[: len(order)]
    step = int(needs.argmax())
    live = (lives.start <= step) & (step < lives.stop)
    scratch = lives.scratch_step == step
    there = replace(
        lives,
        head=lives.head[live],
        start=lives.start[live],
        stop=lives.stop[live],
        scratch_op=lives.scratch_op[scratch],
        scratch_step=lives.scratch_step[scratch],
    )
    return OrderPeak(int(needs[step]), step, order[step], graph, there, _by_size(graph, there))


def _by_size(graph: Graph, lives: "_Lives") -> Ints:
    """Return the indices of ranges, sorted as :func:`largest_first` sorts them."""
    size, start = lives.sizes(graph), np.concatenate([lives.start, lives.scratch_step])
    by_size = np.lexsort((start, -size))
    same = (np.diff(size[by_size]) == 0) & (np.diff(start[by_size]) == 0)
    edges = np.flatnonzero(np.diff(same, prepend=False, append=False))
    for first, last in edges.reshape(-1, 2).tolist():  # equal sizes and starts: by name
        tied = by_size[first : last + 1].tolist()
        by_size[first : last + 1] = sorted(tied, key=partial(lives.name, graph))
    return by_size


def workspace_name(op: Op) -> str:
    """Return the name of the workspace range of ``op``."""
    return f"{op.name} workspace"


MADE_AT_ONCE = 50_000
"""Ranges built in one uninterruptible call; Python handles Ctrl-C between two calls."""


def _ranges_of(graph: Graph, lives: "_Lives") -> tuple[LiveRange, ...]:
    heads, ops = lives.head.tolist(), graph.ops
    columns = (
        map(attrgetter("name"), map(graph.tensors.__getitem__, heads)),
        graph.arrays.size[lives.head].tolist(),
        lives.start.tolist(),
        lives.stop.tolist(),
        _tenants(graph, heads, lives.chains),
        repeat(None, len(heads)),
    )
    # builds a tuple without a Python call, which _make costs
    new_range = partial(tuple.__new__, LiveRange)
    built, ranges = map(new_range, zip(*columns, strict=True)), list[LiveRange]()
    while block := tuple(islice(built, MADE_AT_ONCE)):
        ranges += block
    scratch = zip(lives.scratch_op.tolist(), lives.scratch_step.tolist(), strict=True)
    ranges += [
        LiveRange(workspace_name(ops[op]), ops[op].workspace_bytes, step, step + 1, (), op)
        for op, step in scratch
    ]
    return tuple(ranges)


def profile(
    graph: Graph,
    order: Sequence[int] | None = None,
    ranges: tuple[LiveRange, ...] | None = None,
) -> Profile:
    """Return the live profile of ``graph`` under ``order`` (default: the given order).

    ``ranges`` are its live ranges, if the caller has computed them already.
    """
    order = range(len(graph.ops)) if order is None else tuple(order)
    lives = _lives(graph, order)
    ranges = live_ranges(graph, order) if ranges is None else ranges
    if not order:
        return Profile(ranges, (), sum(r.size_bytes for r in ranges), None)
    needs = _needs(graph, order, lives)[: len(order)]
    steps = tuple(map(ProfileStep._make, zip(order, needs.tolist(), strict=True)))
    return Profile(ranges, steps, int(needs.max()), int(needs.argmax()))


def peak_bytes(graph: Graph, order: Sequence[int] | None = None) -> int:
    """Return the peak of ``graph`` under ``order`` in bytes, workspace included."""
    order = range(len(graph.ops)) if order is None else order
    return int(_needs(graph, order, _lives(graph, order)).max())


def live_bytes(graph: Graph, order: Sequence[int] | None = None) -> list[int]:
    """Return the live bytes at each step of an order, workspace included."""
    order = range(len(graph.ops)) if order is None else order
    needs: list[int] = _needs(graph, order, _lives(graph, order))[: len(order)].tolist()
    return needs


def least_need(graph: Graph) -> tuple[int, int]:
    """Return a lower bound on the peak from single ops, in bytes, and the op that gives it.

    An op needs its inputs, its outputs and its workspace, less what its result may save by overlap.
    The result is (0, -1) for a graph without ops.
    """
    if not graph.ops:
        return 0, -1
    arrays = graph.arrays
    op = np.concatenate([arrays.read.op, arrays.made.op])
    tensor = np.concatenate([arrays.read.tensor, arrays.made.tensor])
    counted = graph.counted[tensor]
    op, root = op[counted], graph.root[tensor[counted]]
    need = _op_needs(graph, op, root)
    worst = int(need.argmax())
    touched = root[op == worst]
    # several of its tensors share a storage, which counts once
    if len(touched) > len(set(touched.tolist())):
        pairs = distinct(op * len(graph.tensors) + root)
        need = _op_needs(graph, pairs // len(graph.tensors), pairs % len(graph.tensors))
        worst = int(need.argmax())
    return int(need[worst]), worst


def _op_needs(graph: Graph, op: Ints, root: Ints) -> Ints:
    """Return each op's need: its workspace and the storages ``root``, less its overlap."""
    need = graph.arrays.workspace.copy()
    need[list(graph.constant_ops)] = 0
    np.add.at(need, op, graph.arrays.size[root])
    saving = any(known.in_place or known.over for known in graph.sharing)
    for index, known in enumerate(graph.ops if saving else ()):
        if (known.in_place or known.over) and _is_own(graph, known.outputs[0]):
            need[index] -= known.over_bytes or graph.arrays.size[known.outputs[0]]
    return need


@dataclass(frozen=True)
class _Lives:
    """Live ranges as arrays: the ranges of tensors, by first tensor, then the workspace ranges.

    ``chains`` maps the first storage of a range to all storages that in-place operators continue.
    """

    head: Ints
    start: Ints
    stop: Ints
    chains: Mapping[int, Sequence[int]]
    scratch_op: Ints
    scratch_step: Ints
    dies: Ints  # for each storage, the step after its range if a result may overlap it, else -1

    def sizes(self, graph: Graph) -> Ints:
        """Return the bytes of the tensor ranges, then of the workspace ranges."""
        arrays = graph.arrays
        return np.concatenate([arrays.size[self.head], arrays.workspace[self.scratch_op]])

    def name(self, graph: Graph, place: int) -> str:
        """Return the name of the range at index ``place``."""
        if place < len(self.head):
            return graph.tensors[int(self.head[place])].name
        return workspace_name(graph.ops[int(self.scratch_op[place - len(self.head)])])


def _lives(graph: Graph, order: Sequence[int] | None) -> _Lives:
    count = len(graph.ops)
    order = range(count) if order is None else order
    if not is_order(graph, order):
        raise InputError(
            f"{graph.name}: the order is not a topological order of its {count} ops: list each op "
            "once, after all ops that it waits for"
        )
    listed = ints(order, count)
    step_of = np.zeros(count, dtype=np.int64)
    step_of[listed] = np.arange(count)
    stop, kept = _stops(graph, step_of)
    dies = np.where(kept, -1, stop)
    heads = _heads(graph, step_of, stop)
    chains = _chains(graph, listed, dies)
    for chain in chains.values():
        stop[chain[0]] = stop[chain[-1]]
        dies[list(chain)] = dies[chain[-1]]
    taken = [root for chain in chains.values() for root in chain[1:]]
    heads = heads[~np.isin(heads, ints(taken))] if taken else heads
    maker = graph.arrays.maker[heads]
    scratch = graph.arrays.workspace[listed] > 0
    if graph.constant_ops:
        scratch &= ~np.isin(listed, ints(graph.constant_ops))
    return _Lives(
        head=heads,
        start=np.where(maker >= 0, step_of[maker] if count else 0, 0),
        stop=stop[heads],
        chains=chains,
        scratch_op=listed[scratch],
        scratch_step=np.flatnonzero(scratch),
        dies=dies,
    )


def _stops(graph: Graph, step_of: Ints) -> tuple[Ints, Flags]:
    """Return, for each storage, the step after its last use, and whether it is an output."""
    root = graph.root
    maker = graph.arrays.maker
    profiled = graph.counted
    stop = np.zeros(len(graph.tensors), dtype=np.int64)
    making = np.flatnonzero(profiled & (maker >= 0))
    np.maximum.at(stop, root[making], step_of[maker[making]] + 1)
    read = graph.arrays.read
    counted = profiled[read.tensor]
    np.maximum.at(stop, root[read.tensor[counted]], step_of[read.op[counted]] + 1)
    outputs = ints(graph.outputs)
    kept = np.zeros(len(graph.tensors), dtype=np.bool_)
    kept[root[outputs]] = True
    stop[root[outputs[profiled[outputs]]]] = max(len(graph.ops), 1)
    return stop, kept


def _heads(graph: Graph, step_of: Ints, stop: Ints) -> Ints:
    """Return the storages in the profile: those live at the start, then in order of production."""
    root = graph.root
    maker = graph.arrays.maker
    profiled = graph.counted
    shown = np.flatnonzero(profiled & (maker[root] < 0) & (stop[root] > 0))
    _, first = np.unique(root[shown], return_index=True)
    given = root[shown[np.sort(first)]]
    pairs = graph.arrays.made
    own = profiled[pairs.tensor] & (root[pairs.tensor] == pairs.tensor)
    op, tensor = pairs.op[own], pairs.tensor[own]
    return np.concatenate([given, tensor[np.argsort(step_of[op], kind="stable")]])


def _chains(graph: Graph, listed: Ints, dies: Ints) -> dict[int, list[int]]:
    """Return the storages that in-place operators continue, by the first storage."""
    if not any(op.in_place for op in graph.sharing):
        return {}
    chains: dict[int, list[int]] = {}
    home: dict[int, int] = {}
    for step, op in enumerate(listed.tolist()):
        known = graph.ops[op]
        if not known.in_place or not _is_own(graph, known.outputs[0]):
            continue
        roots = (graph.storage[tensor] for tensor in known.in_place)
        taken = next((r for r in roots if dies[r] == step + 1 and graph.in_profile[r]), None)
        if taken is not None:
            head = home.get(taken, taken)
            home[known.outputs[0]] = head
            chains.setdefault(head, [head]).append(known.outputs[0])
    return chains


def _is_own(graph: Graph, tensor: int) -> bool:
    return graph.in_profile[tensor] and graph.storage[tensor] == tensor


def _needs(graph: Graph, order: Sequence[int], lives: _Lives) -> Ints:
    """Return the live bytes at each step and after the last; without steps, the total."""
    change = np.zeros(len(graph.ops) + 2, dtype=np.int64)
    size = graph.arrays.size[lives.head]
    np.add.at(change, lives.start, size)
    np.subtract.at(change, lives.stop, size)
    scratch = graph.arrays.workspace[lives.scratch_op]
    change[lives.scratch_step] += scratch
    change[lives.scratch_step + 1] -= scratch
    return np.cumsum(change) - _saved(graph, order, lives)


def _saved(graph: Graph, order: Sequence[int], lives: _Lives) -> Ints:
    """Return, for each step, the most bytes that its result saves by overlapping an operand."""
    saved = np.zeros(len(graph.ops) + 2, dtype=np.int64)
    if not any(op.over for op in graph.sharing):
        return saved
    for step, op in enumerate(order):
        known = graph.ops[op]
        if not known.over or not _is_own(graph, known.outputs[0]):
            continue
        roots = [graph.storage[t] for t in known.over if graph.in_profile[t]]
        if any(lives.dies[root] == step + 1 for root in roots):
            saved[step] = known.over_bytes
    return saved


def _tenants(
    graph: Graph, heads: Sequence[int], chains: Mapping[int, Sequence[int]]
) -> Iterator[tuple[int, ...]]:
    """Yield, for each tensor range (named by its first storage), all tensors in it."""
    members = _members(graph)
    if not members and not chains:
        return zip(heads, strict=True)
    alone = ((head,) for head in heads)
    return (
        tuple(t for root in chains.get(head, own) for t in members.get(root, (root,)))
        for head, own in zip(heads, alone, strict=True)
    )


def _members(graph: Graph) -> Mapping[int, Sequence[int]]:
    """Return, for each storage with views, the profiled tensors in it, ascending."""
    root = graph.root
    views = np.flatnonzero(root != np.arange(len(root))).tolist()
    if not views:
        return {}
    shared: dict[int, list[int]] = {graph.storage[t]: [graph.storage[t]] for t in views}
    for tensor in views:
        if graph.in_profile[tensor]:
            shared[graph.storage[tensor]].append(tensor)
    for tensors in shared.values():
        tensors.sort()
    return shared
