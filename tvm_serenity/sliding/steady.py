"""One step of incremental inference: the rows that it computes, and the rows that it retains.

Every row that no earlier window has computed (:mod:`~tvm_serenity.sliding.retained`) is computed in
each step, if the outputs need it. A row that recurs is *retained* if a computed row reads it or a
later window will. The result is exact: every window's outputs are those of the full network on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tvm_serenity.rows.network import Network

WINDOWS = 50
"""Number of consecutive windows that a network is verified on."""

RowReads = tuple[tuple[int, tuple[int | None, ...]], ...]
"""For each output row of a layer: its kernel's variant, and the row read in each slot.

None stands for a row outside the input.
"""


@dataclass(frozen=True)
class LayerReads:
    """The rows that a layer reads: the input of each slot, and the rows of each output row."""

    inputs: tuple[int, ...]
    rows: RowReads


@dataclass(frozen=True)
class Steady:
    """One step of a network on a window that has moved by ``step`` rows.

    By feature: ``periods``, the number of steps after which its rows recur, and ``shifts``, the
    rows that it moves in that time (0: no row recurs); ``made``, the computed rows (of the input:
    the arriving rows); ``kept``, the rows retained from a period before. ``anew``: each layer that
    computes all its rows although its inputs have recurring rows, and why. ``states``: inputs that
    hold an output of the step before, each with that output.
    """

    network: Network
    step: int
    source: int
    shifts: tuple[int, ...]
    periods: tuple[int, ...]
    made: tuple[tuple[int, ...], ...]
    kept: tuple[tuple[int, ...], ...]
    anew: tuple[tuple[int, str], ...]
    states: tuple[tuple[int, int], ...] = ()

    @cached_property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The rows of each feature that have memory between steps, (0, 0) for none.

        It is the range from the first retained row to the last row that the next step retains; of
        the input up to its end, and all rows if they must be consecutive.
        """
        spans = []
        for f, rows in enumerate(self.kept):
            height = self.network.rows(f)
            if f == self.source:
                spans.append((rows[0] if rows else height - self.step, height))
            elif not rows:
                spans.append((0, 0))
            elif f in self.network.contiguous:
                spans.append((0, height))
            else:
                spans.append((rows[0], rows[-1] + self.shifts[f] + 1))
        return tuple(spans)

    @property
    def stored(self) -> dict[int, tuple[int, int]]:
        """By feature, the rows that are stored for windows of other phases: phases less 1 sets.

        They are the part of the span that the next window of that phase needs.
        """
        triples = enumerate(zip(self.spans, self.shifts, self.periods, strict=True))
        return {f: (a + s, b) for f, ((a, b), s, period) in triples if period > 1 and b > a + s}

    @cached_property
    def feature_bytes(self) -> tuple[int, ...]:
        """Bytes of each feature that are retained between two steps, for all phases."""
        rows = [b - a for a, b in self.spans]
        for f, (a, b) in self.stored.items():
            rows[f] += (self.periods[f] - 1) * (b - a)
        return tuple(n * f.row_bytes for n, f in zip(rows, self.network.features, strict=True))

    @property
    def kept_bytes(self) -> int:
        """Bytes that are retained between two steps."""
        return sum(self.feature_bytes)

    @property
    def steps_to_fill(self) -> int:
        """Number of steps from the start to the first full window."""
        return -(-self.network.rows(self.source) // self.step)

    def rows_computed(self, layer: int) -> int:
        """Return the output rows, or summed input rows, that a layer computes in a step."""
        known = self.network.layers[layer]
        if known.sums:
            return self.network.rows(known.inputs[0]) if self.made[known.outputs[0]] else 0
        return len(self.made[known.outputs[0]])

    def rows_in_all(self, layer: int) -> int:
        """Return the same number for a full window."""
        known = self.network.layers[layer]
        return self.network.rows(known.inputs[0] if known.sums else known.outputs[0])


@dataclass(frozen=True)
class MovedWindow:
    """The recurring rows ``same[f]``, which move by ``shifts[f]`` in ``periods[f]`` steps.

    The other fields are those of :class:`Steady`.
    """

    network: Network
    step: int
    reads: tuple[LayerReads | None, ...]
    source: int
    shifts: tuple[int, ...]
    periods: tuple[int, ...]
    same: tuple[frozenset[int], ...]
    anew: tuple[tuple[int, str], ...]
    states: tuple[tuple[int, int], ...] = ()

    @property
    def may_be_kept(self) -> tuple[int, ...]:
        """Features with recurring rows, except inputs: each may be retained or recomputed."""
        given = {self.source, *self.network.inputs}
        return tuple(f for f, rows in enumerate(self.same) if rows and f not in given)

    def steady(self, again: frozenset[int] = frozenset()) -> Steady:
        """Return the step, with the features in ``again`` recomputed."""
        same = [frozenset() if f in again else rows for f, rows in enumerate(self.same)]
        made, kept = _needed(self.network, self.reads, self.source, self.shifts, same)
        given = self.network, self.step, self.source, self.shifts, self.periods
        return Steady(*given, made, kept, self.anew, self.states)


def _needed(
    network: Network,
    reads: Sequence[LayerReads | None],
    source: int,
    shifts: Sequence[int],
    same: Sequence[frozenset[int]],
) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """Return the computed and retained rows of every feature that outputs need, now or later."""
    needed: list[set[int]] = [set() for _ in network.features]
    for f in network.outputs:
        needed[f] = set(range(network.rows(f)))
    before = -1
    while before != (before := sum(map(len, needed))):
        for f, rows in enumerate(needed):
            todo = [y for y in rows if y in same[f]]
            while todo:  # a row retained now was retained further on in the step before
                y = todo.pop() + shifts[f]
                if y not in rows:
                    rows.add(y)
                    todo += [y] if y in same[f] else []
        for index in reversed(range(len(network.layers))):
            _read(network, index, reads[index], same, needed)
    made = [tuple(sorted(rows - same[f])) for f, rows in enumerate(needed)]
    kept = [tuple(sorted(rows & same[f])) for f, rows in enumerate(needed)]
    made[source] = tuple(range(network.rows(source) - shifts[source], network.rows(source)))
    return tuple(made), tuple(kept)


def _read(
    network: Network,
    index: int,
    reads: LayerReads | None,
    same: Sequence[frozenset[int]],
    needed: Sequence[set[int]],
) -> None:
    """Add the rows that a layer reads for the rows that it must compute."""
    layer = network.layers[index]
    rows = {y for f in layer.outputs for y in needed[f] - same[f]}
    if not rows:
        return
    if reads is None:
        for f in layer.inputs:
            needed[f].update(range(network.rows(f)))
        return
    for y in rows:
        for position, row in zip(reads.inputs, reads.rows[y][1], strict=True):
            if row is not None:
                needed[layer.inputs[position]].add(row)
