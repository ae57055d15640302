"""What a step of a window that moves makes anew, and what it keeps.

Everything that is not as it was in a window before (:mod:`~tvm_serenity.sliding.stays`) is made
anew in each step, if the outputs need it; what is the same is *kept*, if something new reads it or
a later window will. Nothing is approximated: every window's outputs are those of the whole network
on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tvm_serenity.rows.network import Network

WINDOWS = 50
"""Windows that a network is verified on, one after the other."""

RowReads = tuple[tuple[int, tuple[int | None, ...]], ...]
"""For each row of a layer's output: its kernel's variant, and the row read in each slot (None: a
row outside of the input)."""


@dataclass(frozen=True)
class LayerReads:
    """``inputs``: for each slot, which of the layer's inputs it reads; ``rows``: for each row."""

    inputs: tuple[int, ...]
    rows: RowReads


@dataclass(frozen=True)
class Steady:
    """One step of a network on a window that has moved by ``step`` rows.

    By feature: ``periods``, after how many steps its rows are there again, and ``shifts``, the rows
    that it moves in that time (0: nothing stays); ``made``, the rows made anew (of the input: those
    that arrive); ``kept``, the rows that are there from a period before. ``anew``: each layer from
    which on all is made anew though it reads what stays, and why. ``states``: inputs that hold what
    the step before has made as an output, each with that output.
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
        """The rows of each feature that have a place of their own between steps; (0, 0): none.

        From the first row kept to the last one that the next step keeps; of the input all to its
        end, and of what must be one after the other all rows.
        """
        found = []
        for f, rows in enumerate(self.kept):
            height = self.network.rows(f)
            if f == self.source:
                found.append((rows[0] if rows else height - self.step, height))
            elif not rows:
                found.append((0, 0))
            elif f in self.network.contiguous:
                found.append((0, height))
            else:
                found.append((rows[0], rows[-1] + self.shifts[f] + 1))
        return tuple(found)

    @property
    def stored(self) -> dict[int, tuple[int, int]]:
        """The rows that a window of another phase keeps, by feature: as many sets as phases less 1.

        They are those of the span that the next window of that phase needs.
        """
        found = enumerate(zip(self.spans, self.shifts, self.periods, strict=True))
        return {f: (a + s, b) for f, ((a, b), s, period) in found if period > 1 and b > a + s}

    @cached_property
    def feature_bytes(self) -> tuple[int, ...]:
        """Bytes of each feature that are there between two steps, of all phases."""
        rows = [b - a for a, b in self.spans]
        for f, (a, b) in self.stored.items():
            rows[f] += (self.periods[f] - 1) * (b - a)
        return tuple(n * f.row_bytes for n, f in zip(rows, self.network.features, strict=True))

    @property
    def kept_bytes(self) -> int:
        """Bytes that are there between two steps."""
        return sum(self.feature_bytes)

    @property
    def steps_to_fill(self) -> int:
        """Steps from nothing to the first window."""
        return -(-self.network.rows(self.source) // self.step)

    def rows_made(self, layer: int) -> int:
        """How many rows of its output, or of what it sums up, a layer goes through in a step."""
        known = self.network.layers[layer]
        if known.sums:
            return self.network.rows(known.inputs[0]) if self.made[known.outputs[0]] else 0
        return len(self.made[known.outputs[0]])

    def rows_in_all(self, layer: int) -> int:
        """The same for a whole window."""
        known = self.network.layers[layer]
        return self.network.rows(known.inputs[0] if known.sums else known.outputs[0])


@dataclass(frozen=True)
class MovedWindow:
    """What stays of each feature: ``same[f]``, which move by ``shifts[f]`` in ``periods[f]`` steps.

    All else as of :class:`Steady`.
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
        """Features but inputs of which rows stay: each may be kept, or made again."""
        given = {self.source, *self.network.inputs}
        return tuple(f for f, rows in enumerate(self.same) if rows and f not in given)

    def steady(self, again: frozenset[int] = frozenset()) -> Steady:
        """Return what a step makes anew and keeps; of features of ``again`` nothing is kept."""
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
    """The rows made and kept of every feature: what the outputs need, now and in later steps."""
    needed: list[set[int]] = [set() for _ in network.features]
    for f in network.outputs:
        needed[f] = set(range(network.rows(f)))
    before = -1
    while before != (before := sum(map(len, needed))):
        for f, rows in enumerate(needed):
            todo = [y for y in rows if y in same[f]]
            while todo:  # what is kept now is kept further on in the step before
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
    """Add the rows that a layer reads for what it must make."""
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
