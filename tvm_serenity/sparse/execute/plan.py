"""The kernel's program: an order as groups of connections, in phases of groups of one size.

A run is a stretch of the order with one target and sources of one kind (inputs of the network, or
computed values). A group is a run, or neighbouring runs that share the loads of their sources
(``steps``); its sums stay in registers. A neuron's first group starts from the bias, its last one
applies the activation. Values that depend on constants only are folded into biases.
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
"""Size of the groups that copy an input to its slot."""
FRESH, FROM_INPUTS, RELU, OUTPUT = 1, 2, 4, 8
"""Flags of a member: starts from the bias; reads inputs; ends in ReLU; ends an output."""
AHEAD = 64
"""Groups whose inputs are copied at once: few enough for the first cache."""


@dataclass(frozen=True)
class Groups:
    """The arrays that the kernel reads: phases (P) of groups (G) of members (N).

    ``phase`` (P, 6): members of each of its groups, or COPY; the number of groups; where its steps,
    members, loads and weights begin. ``steps``: per group, those of the loops of its size.
    ``member`` (N, 3): the neuron's slot, flags, column of the outputs (of the inputs, for a copy);
    ``bias`` (N): its start. ``source``: per load, the slot or the column of the inputs; ``weight``
    (W). ``input_loads``: the number of loads that read inputs in place.
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
        """Return how many values are held; neurons share slots in turn."""
        return 1 + int(self.member[:, 0].max())

    @property
    def together(self) -> int:
        """Return the most members of a group."""
        return max(1, int(self.phase[:, 0].max()))

    def arrays(self) -> list[NDArray[Any]]:
        """Return the arrays in the order of the kernel's arguments."""
        listed = (self.phase, self.steps, self.member, self.bias, self.source, self.weight)
        return [np.ascontiguousarray(array) for array in listed]


@dataclass(frozen=True)
class _Runs:
    """Runs (R): ``of`` (W), that of each connection; ``target``, ``fed`` by inputs, ``length``."""

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
    """Return the groups of a checked order.

    ``staged``: inputs are copied to slots, aligned and tile by tile, instead of read in place.
    ``together``: so many neighbouring runs are computed at once, where they are of one level and,
    if given, of one ``block`` (W, rising).
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
    copies = before + np.arange(len(copied))  # the place of each copy and group among all
    places = np.arange(len(size)) + np.searchsorted(before, np.arange(len(size)), side="right")
    sizes = _spread(len(size) + len(copied), (places, size), (copies, COPY))
    member = np.append(0, np.cumsum(np.maximum(sizes, 1)))

    times = (places[group], copies)
    if block is not None:  # by level: sources of a block are neighbours, evenly spread in the cache
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
    """Return the phases and the steps; ``sizes`` of groups and copies, ``places`` of the groups."""
    first = np.flatnonzero(np.diff(sizes, prepend=-1))
    loops = np.array([len(LOOPS.get(size, ())) for size in range(LARGEST + 1)])[sizes]
    begin = np.append(0, np.cumsum(loops))
    before = np.searchsorted(places, first)  # the first group that is not before the phase
    ends = [np.append(at, 0)[before] for at in (loop_order.source_at, loop_order.weight_at)]
    phase = [sizes[first], np.diff(np.append(first, len(sizes))), begin[first], member[first]]
    counts = loop_order.counts[np.arange(MOST) < loops[places][:, None]]
    return _ints([*phase, *ends]), counts.astype(np.int32)


def _ints(columns: list[NDArray[Any]]) -> Ints:
    return np.column_stack(columns).astype(np.int32)


def _spread(count: int, *parts: tuple[Longs, Any]) -> NDArray[Any]:
    """Return ``count`` rows, each from the part that names its place, else 0."""
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
    """Return the group of each run and the size of each group; no group leaves its level or block.

    A value is never used on its own level, so runs of one level do not wait for each other.
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
    """Return which member of its group each run is: those with most connections come first."""
    order = np.lexsort((-runs.length, group))
    label = np.empty_like(group)
    label[order] = np.arange(len(group)) - np.searchsorted(group, group[order])
    return label


def _copies(net: FFNN, sources: Ints, group: Longs) -> tuple[Ints, Longs]:
    """Return the inputs that are used, and before which group each is copied (rising)."""
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
    """Return the slot of each neuron; ``at``: the times of the runs and of the copies."""
    begins = np.full(net.neurons, np.iinfo(np.int64).max // 4)
    read, written = np.full(net.neurons, -1), np.full(net.neurons, -1)
    np.minimum.at(begins, runs.target, at[0])
    np.maximum.at(written, runs.target, at[0])
    np.maximum.at(read, sources, at[0][runs.of])
    begins[copied] = written[copied] = at[1]
    return slots(np.where(written < 0, -1, begins), read, written, at_once)


def _members(net: FFNN, runs: _Runs, slot: Ints) -> Ints:
    """Return slot, flags and column of the outputs of the neuron of each run."""
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
