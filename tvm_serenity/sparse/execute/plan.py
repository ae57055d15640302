"""Converts an order of connections to the arrays that the kernel reads.

A *run* is a sequence of connections in the order with the same target and sources of one kind
(inputs of the network, or computed values). A *group* has one run, or neighbouring runs that share
loads of their sources (``steps``); its sums stay in registers. A *phase* is a sequence of groups of
the same size. The first group of a neuron starts with the bias, the last one applies the
activation. Constant neurons are folded into biases.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvm_serenity.sparse.constants import folded
from tvm_serenity.sparse.execute.slots import slots
from tvm_serenity.sparse.execute.steps import LARGEST, LOOPS, MOST, LoopOrder, steps
from tvm_serenity.sparse.network import FFNN, Activation, Floats, Ints, Longs

Bools = NDArray[np.bool_]

COPY = 0
"""The group size that stands for a copy of an input to its slot."""
FRESH, FROM_INPUTS, RELU, OUTPUT = 1, 2, 4, 8
"""Flags of a member: it starts with the bias; reads inputs; ends with ReLU; ends an output."""
AHEAD = 64
"""Number of groups whose inputs are copied together, so that they fit in the L1 cache."""


@dataclass(frozen=True)
class Groups:
    """The arrays that the kernel reads: P phases of G groups with N members in total.

    A member is a run of a group, or a copy. ``phase`` (P, 6): members per group, or COPY; number of
    groups; the positions at which its steps, members, loads and weights begin. ``steps``: for each
    group, the number of steps of each of its loops. ``member`` (N, 3): slot, flags, and column of
    the outputs (for a copy, of the inputs). ``bias`` (N): the start value. ``source``: for each
    load, a slot or a column of the inputs. ``weight`` (W): the weights. ``input_loads``: the number
    of loads that read inputs in place.
    """

    phase: Ints
    steps: Ints
    member: Ints
    bias: Floats
    source: Ints
    weight: Floats
    input_loads: int

    @property
    def slots(self) -> int:
        """Return the number of slots for values; a slot is reused when its value is dead."""
        return 1 + int(self.member[:, 0].max())

    @property
    def together(self) -> int:
        """Return the largest number of members of a group."""
        return max(1, int(self.phase[:, 0].max()))

    def arrays(self) -> list[NDArray[Any]]:
        """Return the arrays in the order of the kernel's arguments."""
        listed = (self.phase, self.steps, self.member, self.bias, self.source, self.weight)
        return [np.ascontiguousarray(array) for array in listed]


@dataclass(frozen=True)
class _Runs:
    """The R runs of an order of W connections.

    ``of`` (W): the run of each connection. ``target`` (R): the target neuron. ``fed`` (R): whether
    the sources are inputs. ``length`` (R): the number of connections.
    """

    of: Longs
    target: Ints
    fed: Bools
    length: Longs


def groups(
    net: FFNN,
    order: Ints,
    staged: bool = False,
    together: int = 1,
    block: Longs | None = None,
) -> Groups:
    """Return the groups of ``order``, a checked topological order.

    ``staged``: copy inputs to aligned slots, tile by tile, instead of reading them in place.
    ``together``: compute up to this many neighbouring runs together, if they are on the same level
    and in the same block. ``block`` (W, ascending): the block number of each connection.
    """
    fold = folded(net)
    kept = fold.varies[net.sources[order]]
    order = order[kept]
    sources, column = net.sources[order], _numbered(net.neurons, net.inputs)
    runs = _runs(net.targets[order], (column[sources] >= 0) & (not staged))
    within: NDArray[Any] = net.levels[net.targets[order]] if block is None else block[kept]
    group, size = _joined(runs, within, together)
    label = _labels(runs, group)
    loop_order = steps(size, group[runs.of], label[runs.of], sources)

    copied, before = _copies(net, sources, group[runs.of]) if staged else (net.inputs[:0],) * 2
    copies = before + np.arange(len(copied))  # Positions among all copies and groups.
    places = np.arange(len(size)) + np.searchsorted(before, np.arange(len(size)), side="right")
    sizes = _spread(len(size) + len(copied), (places, size), (copies, COPY))
    member = np.append(0, np.cumsum(np.maximum(sizes, 1)))

    times = (places[group], copies)
    # Numbering slots by level makes the sources of a block neighbours, spread evenly in the cache.
    if block is not None:
        times = (net.levels[runs.target], np.zeros_like(copies))
    slot = _slots(net, sources, runs, copied, times, block is None)
    fed = runs.fed[runs.of[loop_order.loads]]
    mine, theirs = member[places[group]] + label, member[copies]
    copying = _ints([slot[copied], np.zeros_like(copied), column[copied]])
    return Groups(
        *_phases(sizes, member, places, loop_order),
        _spread(int(member[-1]), (mine, _members(net, runs, slot)), (theirs, copying)),
        _spread(int(member[-1]), (mine, fold.biases[runs.target])),
        np.where(fed, column[sources[loop_order.loads]], slot[sources[loop_order.loads]]),
        net.weights[order][loop_order.weights],
        int(fed.sum()),
    )


def _phases(sizes: Longs, member: Longs, places: Longs, loop_order: LoopOrder) -> tuple[Ints, Ints]:
    """Return the arrays ``phase`` and ``steps`` of :class:`Groups`.

    ``sizes``: members of each group or COPY, in order. ``places``: the positions of the groups.
    """
    first = np.flatnonzero(np.diff(sizes, prepend=-1))
    loops = np.array([len(LOOPS.get(size, ())) for size in range(LARGEST + 1)])[sizes]
    begin = np.append(0, np.cumsum(loops))
    before = np.searchsorted(places, first)  # The first group of each phase, or the next group.
    ends = [np.append(at, 0)[before] for at in (loop_order.source_at, loop_order.weight_at)]
    phase = [sizes[first], np.diff(np.append(first, len(sizes))), begin[first], member[first]]
    counts = loop_order.counts[np.arange(MOST) < loops[places][:, None]]
    return _ints([*phase, *ends]), counts.astype(np.int32)


def _ints(columns: list[NDArray[Any]]) -> Ints:
    return np.column_stack(columns).astype(np.int32)


def _spread(count: int, *parts: tuple[Longs, Any]) -> NDArray[Any]:
    """Return an array of ``count`` rows: zero, except for ``parts`` (row indices and values)."""
    values = np.asarray(parts[0][1])
    rows = np.zeros((count, *values.shape[1:]), dtype=values.dtype)
    for places, part in parts:
        rows[places] = part
    return rows


def _numbered(count: int, listed: Ints) -> Ints:
    number = np.full(count, -1, dtype=np.int32)
    number[listed] = np.arange(len(listed))
    return number


def _runs(targets: Ints, fed: Bools) -> _Runs:
    starts = np.ones(len(targets), dtype=bool)
    starts[1:] = (targets[1:] != targets[:-1]) | (fed[1:] != fed[:-1])
    begin = np.flatnonzero(starts)
    length = np.diff(np.append(begin, len(targets)))
    return _Runs(np.cumsum(starts) - 1, targets[begin], fed[begin], length)


def _joined(runs: _Runs, within: NDArray[Any], together: int) -> tuple[Longs, Longs]:
    """Return the group of each run, and the size of each group.

    The runs of a group are on the same level and in the same block (``within``). A value is never
    used on its own level, so runs of one level do not depend on each other.
    """
    count = len(runs.target)
    key = within[np.cumsum(runs.length) - runs.length]
    key = 2 * key + runs.fed
    breaks = np.flatnonzero(np.diff(key, prepend=-1))
    index = np.arange(count) - np.repeat(breaks, np.diff(np.append(breaks, count)))
    starts = index % together == 0
    chunk = np.cumsum(starts) - 1
    many = int(runs.target.max()) + 1
    distinct = np.unique(chunk * many + runs.target) // many
    complete = (np.bincount(chunk) == together) & (np.bincount(distinct) == together)
    group = np.cumsum(starts | ~complete[chunk]) - 1
    return group, np.bincount(group)


def _labels(runs: _Runs, group: Longs) -> Longs:
    """Return the index of each run within its group, by decreasing number of connections."""
    order = np.lexsort((-runs.length, group))
    label = np.empty_like(group)
    label[order] = np.arange(len(group)) - np.searchsorted(group, group[order])
    return label


def _copies(net: FFNN, sources: Ints, group: Longs) -> tuple[Ints, Longs]:
    """Return the inputs that are used, and the group before which each is copied (ascending)."""
    first = np.full(net.neurons, len(group), dtype=np.int64)
    np.minimum.at(first, sources, group)
    used = net.inputs[first[net.inputs] < len(group)]
    used = used[np.argsort(first[used], kind="stable")]
    before, start = first[used], -AHEAD
    for number, needed in enumerate(before.tolist()):
        if needed >= start + AHEAD:
            start = needed
        before[number] = start
    return used, before


def _slots(
    net: FFNN,
    sources: Ints,
    runs: _Runs,
    copied: Ints,
    at: tuple[NDArray[Any], Longs],
    at_once: bool,
) -> Ints:
    """Return the slot of each neuron; ``at`` holds the positions of the runs and of the copies."""
    begins = np.full(net.neurons, np.iinfo(np.int64).max // 4)
    read, written = np.full(net.neurons, -1), np.full(net.neurons, -1)
    np.minimum.at(begins, runs.target, at[0])
    np.maximum.at(written, runs.target, at[0])
    np.maximum.at(read, sources, at[0][runs.of])
    begins[copied] = written[copied] = at[1]
    return slots(np.where(written < 0, -1, begins), read, written, at_once)


def _members(net: FFNN, runs: _Runs, slot: Ints) -> Ints:
    """Return the array ``member`` of :class:`Groups` for all runs."""
    count, out = len(runs.target), _numbered(net.neurons, net.outputs)[runs.target]
    fresh, last = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    fresh[np.unique(runs.target, return_index=True)[1]] = True
    last[count - 1 - np.unique(runs.target[::-1], return_index=True)[1]] = True
    rectified = np.where(
        net.is_output,
        net.output_activation is Activation.RELU,
        net.activation is Activation.RELU,
    )
    flags: Longs = (
        FRESH * fresh
        + FROM_INPUTS * runs.fed
        + RELU * (last & rectified[runs.target])
        + OUTPUT * (last & (out >= 0))
    )
    return _ints([slot[runs.target], flags, np.maximum(out, 0)])
