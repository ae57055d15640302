"""Which rows of each feature are those of the window before, which are new, which are kept.

Window w shows rows ``w * step`` to before ``w * step + height`` of a stream. Row y of a feature is
*the same* in window w as row ``y + shift`` in window w - 1 if both are made by the same kernel from
rows that are the same, which lie ``shift`` rows of their own feature further. Rows at the edges
read padding, which moves with the window: they are not the same, and neither is what reads them.

Everything that is not the same is made anew in each step, if the outputs need it; what is the same
is *kept* from the last step, if something new reads it or a later window will. Nothing is
approximated: every window's outputs are those of the whole network on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from tvm_serenity.errors import InputError
from tvm_serenity.rows.network import Layer, Network

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

    By feature: ``shifts``, the rows that it moves in a step (0: nothing stays); ``made``, the rows
    made anew (of the input: those that arrive); ``kept``, the rows that are there from the step
    before. ``anew``: each layer from which on all is made anew though it reads what stays, and why.
    """

    network: Network
    step: int
    source: int
    shifts: tuple[int, ...]
    made: tuple[tuple[int, ...], ...]
    kept: tuple[tuple[int, ...], ...]
    anew: tuple[tuple[int, str], ...]

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
    def kept_bytes(self) -> int:
        """Bytes that are there between two steps."""
        sizes = (f.row_bytes for f in self.network.features)
        return sum((b - a) * size for (a, b), size in zip(self.spans, sizes, strict=True))

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
    """What stays of each feature when the window moves: ``same[f]``, which move by ``shifts[f]``.

    All else as of :class:`Steady`.
    """

    network: Network
    step: int
    reads: tuple[LayerReads | None, ...]
    source: int
    shifts: tuple[int, ...]
    same: tuple[frozenset[int], ...]
    anew: tuple[tuple[int, str], ...]

    @property
    def may_be_kept(self) -> tuple[int, ...]:
        """Features but the input of which rows stay: each may be kept, or made again."""
        return tuple(f for f, rows in enumerate(self.same) if rows and f != self.source)

    def steady(self, again: frozenset[int] = frozenset()) -> Steady:
        """Return what a step makes anew and keeps; of features of ``again`` nothing is kept."""
        same = [frozenset() if f in again else rows for f, rows in enumerate(self.same)]
        made, kept = _needed(self.network, self.reads, self.source, self.shifts, same)
        return Steady(self.network, self.step, self.source, self.shifts, made, kept, self.anew)


def steady(network: Network, step: int, reads: Sequence[LayerReads | None]) -> Steady:
    """Return what a step of ``step`` input rows makes anew where it keeps all that it can use."""
    return moved(network, step, reads).steady()


def moved(network: Network, step: int, reads: Sequence[LayerReads | None]) -> MovedWindow:
    """Return what stays when the window moves by ``step`` input rows.

    ``reads``: what each layer that is made row by row reads, None of others. Raises
    :class:`InputError` where there is no axis of rows to move along, or no layer of which a row
    stays.
    """
    source = _source(network)
    height = network.rows(source)
    if not 1 <= step < height:
        shape = "x".join(map(str, network.features[source].shape))
        raise InputError(
            f"--sliding {step}: the window of {shape} has {height} rows; a step of 1 to "
            f"{height - 1} shares rows with the window before"
        )
    shifts = [0] * len(network.features)
    same: list[frozenset[int]] = [frozenset()] * len(network.features)
    shifts[source], same[source] = step, frozenset(range(height - step))
    anew: list[tuple[int, str]] = []
    for index, layer in enumerate(network.layers):
        shift, rows = _moved(network, layer, reads[index], shifts, same)
        for f in layer.outputs if source not in layer.outputs else ():
            shifts[f], same[f] = shift, rows
        if not shift and any(shifts[f] for f in layer.inputs) and source not in layer.outputs:
            anew.append((index, _why(network, layer, reads[index], shifts)))
    if not any(shifts[f] for f in range(len(shifts)) if f != source):
        first, why = anew[0] if anew else (0, "it reads no rows")
        name = network.layers[first].name
        raise InputError(f"--sliding {step}: nothing but input rows would stay: {name} {why}")
    return MovedWindow(network, step, tuple(reads), source, tuple(shifts), tuple(same), tuple(anew))


def _source(network: Network) -> int:
    """The feature that the window is: the input, or its view by rows."""
    if len(network.inputs) != 1:
        names = ", ".join(network.features[f].name for f in network.inputs[:4])
        more = ", ..." if len(network.inputs) > 4 else ""
        raise InputError(
            f"{network.name}: has {len(network.inputs)} inputs and states ({names}{more}); "
            "--sliding takes one input. A network that keeps states moves by itself"
        )
    (source,) = network.inputs
    readers = network.readers[source]
    if network.rows(source) == 1 and len(readers) == 1 and network.layers[readers[0]].view:
        (source,) = network.layers[readers[0]].outputs
    if network.rows(source) < 2:
        shape = "x".join(map(str, network.features[source].shape))
        raise InputError(f"{network.name}: its input of {shape} has no rows to slide along")
    return source


def _moved(
    network: Network,
    layer: Layer,
    reads: LayerReads | None,
    shifts: Sequence[int],
    same: Sequence[frozenset[int]],
) -> tuple[int, frozenset[int]]:
    """How far the rows of a layer's outputs move, and which are the same; (0, none) if none are."""
    if reads is None or not all(shifts[f] for f in layer.inputs):
        return 0, frozenset()
    height = network.rows(layer.outputs[0])
    best: tuple[int, frozenset[int]] = (0, frozenset())
    for shift in _shifts(layer, reads, shifts):
        rows = frozenset(
            y for y in range(height - shift) if _alike(layer, reads, shifts, same, y, shift)
        )
        if len(rows) > len(best[1]):
            best = shift, rows
    return best


def _shifts(layer: Layer, reads: LayerReads, shifts: Sequence[int]) -> list[int]:
    """How far rows may move, ascending: so far that some slot reads what has moved there."""
    found = set[int]()
    for slot, position in enumerate(reads.inputs):
        read = [rows[slot] for _, rows in reads.rows]
        made: dict[int, list[int]] = {}
        for y, row in enumerate(read):
            if row is not None:
                made.setdefault(row, []).append(y)
        far = shifts[layer.inputs[position]]
        for y, row in enumerate(read):
            if row is not None:
                found.update(later - y for later in made.get(row + far, ()) if later > y)
    return sorted(found)


def _alike(
    layer: Layer,
    reads: LayerReads,
    shifts: Sequence[int],
    same: Sequence[frozenset[int]],
    y: int,
    shift: int,
) -> bool:
    """Whether row y is what row ``y + shift`` was in the window before."""
    (variant, rows), (before, earlier) = reads.rows[y], reads.rows[y + shift]
    if variant != before:
        return False
    for position, row, then in zip(reads.inputs, rows, earlier, strict=True):
        feature = layer.inputs[position]
        if row is None or then is None:
            if row is not then:
                return False
        elif then != row + shifts[feature] or row not in same[feature]:
            return False
    return True


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


def _why(network: Network, layer: Layer, reads: LayerReads | None, shifts: Sequence[int]) -> str:
    """Why nothing that a layer makes stays, though it reads what does."""
    if layer.view or reads is None or layer.sums:
        return "takes all rows of the window together"
    gone = [f for f in layer.inputs if not shifts[f]]
    if gone:
        return f"also reads {network.features[gone[0]].name}, of which nothing stays"
    for position, feature in enumerate(layer.inputs):
        stride = _stride(reads, position)
        if stride > 1 and shifts[feature] % stride:
            return (
                f"makes a row for each {stride} rows of {network.features[feature].name}, which "
                f"move by {shifts[feature]}"
            )
    variants = [variant for variant, _ in reads.rows]
    if len(set(variants)) == len(variants) > 1:
        return "makes each of its rows in another way, as with a constant that differs by row"
    return "reads padding, or rows beside it, for each of its rows"


def _stride(reads: LayerReads, position: int) -> int:
    """How many rows of an input lie between two rows of the output, 0 where that differs."""
    slot = reads.inputs.index(position)
    rows = [(y, r[1][slot]) for y, r in enumerate(reads.rows)]
    inside = [(y, row) for y, row in rows if row is not None]
    found = {b - a for (i, a), (j, b) in pairwise(inside) if j == i + 1}
    return found.pop() if len(found) == 1 else 0
