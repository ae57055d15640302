"""One step of incremental inference: the rows that it computes, and the rows that it retains.

A step computes each row that the outputs need and that does not recur
(:mod:`~tvm_serenity.sliding.retained`). A recurring row is *retained* if this step or a later one
reads it. The result is exact: the outputs equal those of the full network on the same window.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tvm_serenity.rows.network import Network

WINDOWS = 50
"""Number of consecutive windows on which a network is verified."""

RowReads = tuple[tuple[int, tuple[int | None, ...]], ...]
"""For each output row of a layer: the kernel's variant, and the input row that each slot reads.

None stands for a row outside of the input.
"""


@dataclass(frozen=True)
class LayerReads:
    """The rows that a layer reads.

    ``inputs``: for each slot, the position of its input in the layer's ``inputs``. ``rows``: for
    each output row, the input row of each slot.
    """

    inputs: tuple[int, ...]
    rows: RowReads


@dataclass(frozen=True)
class Steady:
    """One step of a network, after its window has moved by ``step`` rows.

    Per feature: ``periods``, the number of steps after which its rows recur; ``shifts``, the number
    of rows by which they move in that time (0: no row recurs); ``made``, the rows that the step
    computes (for the input, the arriving rows); ``kept``, the rows retained from one period before.
    ``source``: the feature of the moving window. ``anew``: layers that compute all rows although
    their inputs have recurring rows, each with the reason. ``states``: pairs of an input and the
    output whose value of the previous step it holds.
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
        """Per feature, the range of rows that has memory between steps; (0, 0) for no rows.

        The range ends with the last row that the next step retains; for the window's feature with
        its last row. A contiguous feature with retained rows has memory for all its rows.
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
        """Maps each feature of several phases to the range of rows stored for another phase.

        A feature with period p has p - 1 such stores. Each holds the rows of ``spans`` that remain
        in the window when the phase comes again: all but the first ``shifts[f]`` rows.
        """
        triples = enumerate(zip(self.spans, self.shifts, self.periods, strict=True))
        return {f: (a + s, b) for f, ((a, b), s, period) in triples if period > 1 and b > a + s}

    @cached_property
    def feature_bytes(self) -> tuple[int, ...]:
        """Bytes that are retained between two steps of each feature, over all phases."""
        rows = [b - a for a, b in self.spans]
        for f, (a, b) in self.stored.items():
            rows[f] += (self.periods[f] - 1) * (b - a)
        return tuple(n * f.row_bytes for n, f in zip(rows, self.network.features, strict=True))

    @property
    def kept_bytes(self) -> int:
        """Bytes that are retained between two steps in total."""
        return sum(self.feature_bytes)

    @property
    def steps_to_fill(self) -> int:
        """Number of steps from the start to the first full window."""
        return -(-self.network.rows(self.source) // self.step)

    def rows_computed(self, layer: int) -> int:
        """Return the number of rows that a layer computes in a step.

        For a layer that sums up rows, return the number of input rows that it adds.
        """
        known = self.network.layers[layer]
        if known.sums:
            return self.network.rows(known.inputs[0]) if self.made[known.outputs[0]] else 0
        return len(self.made[known.outputs[0]])

    def rows_in_all(self, layer: int) -> int:
        """Return the number of rows (see :meth:`rows_computed`) for a full window."""
        known = self.network.layers[layer]
        return self.network.rows(known.inputs[0] if known.sums else known.outputs[0])


@dataclass(frozen=True)
class MovedWindow:
    """The recurring rows of a network whose window moves by ``step`` rows.

    ``same``: the recurring rows of each feature. Row y of ``same[f]`` equals row ``y + shifts[f]``
    of the window ``periods[f]`` steps before. The other fields are those of :class:`Steady`.
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
        """The computed features with recurring rows: a step may retain or recompute each."""
        given = {self.source, *self.network.inputs}
        return tuple(f for f, rows in enumerate(self.same) if rows and f not in given)

    def steady(self, again: frozenset[int] = frozenset()) -> Steady:
        """Return the step that recomputes the features in ``again`` and retains the others."""
        same = [frozenset() if f in again else rows for f, rows in enumerate(self.same)]
        computed, retained = _needed(self.network, self.reads, self.source, self.shifts, same)
        given = self.network, self.step, self.source, self.shifts, self.periods
        return Steady(*given, computed, retained, self.anew, self.states)


def _needed(
    network: Network,
    reads: Sequence[LayerReads | None],
    source: int,
    shifts: Sequence[int],
    same: Sequence[frozenset[int]],
) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """Return the rows of every feature that a step computes, and those that it retains.

    The outputs of this step or of a later step need these rows.
    """
    needed: list[set[int]] = [set() for _ in network.features]
    for f in network.outputs:
        needed[f] = set(range(network.rows(f)))
    before = -1
    while before != (before := sum(map(len, needed))):
        for f, rows in enumerate(needed):
            todo = [y for y in rows if y in same[f]]
            # Row y of this window is row y + shift of the window before, which must provide it.
            while todo:
                y = todo.pop() + shifts[f]
                if y not in rows:
                    rows.add(y)
                    todo += [y] if y in same[f] else []
        for index in reversed(range(len(network.layers))):
            _read(network, index, reads[index], same, needed)
    computed = [tuple(sorted(rows - same[f])) for f, rows in enumerate(needed)]
    retained = [tuple(sorted(rows & same[f])) for f, rows in enumerate(needed)]
    computed[source] = tuple(range(network.rows(source) - shifts[source], network.rows(source)))
    return tuple(computed), tuple(retained)


def _read(
    network: Network,
    index: int,
    reads: LayerReads | None,
    same: Sequence[frozenset[int]],
    needed: Sequence[set[int]],
) -> None:
    """Add the rows that a layer reads to ``needed``, if the layer must compute any rows."""
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
