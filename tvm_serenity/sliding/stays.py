"""Which rows of each feature are those of a window before.

Window w shows rows ``w * step`` to before ``w * step + height`` of a stream. Row y of a feature is
*the same* in window w as row ``y + shift`` in window w - 1 if both are made by the same kernel from
rows that are the same, which lie ``shift`` rows of their own feature further. Rows at the edges
read padding, which moves with the window: they are not the same, and neither is what reads them.

Behind a layer with a stride of 2, rows of windows of odd steps are others than those of even ones.
There a feature has a *period* of 2: its rows are those of the window two steps before, and two sets
of them are kept, one for each phase of the stream.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd, lcm

from tvm_serenity.errors import InputError
from tvm_serenity.rows.network import Layer, Network
from tvm_serenity.sliding.steady import LayerReads, MovedWindow, Steady

PHASES = 8
"""Steps after which rows of a feature are there again, at most: so many sets of them are kept."""


def steady(network: Network, step: int, reads: Sequence[LayerReads | None]) -> Steady:
    """Return what a step of ``step`` input rows makes anew where it keeps all that it can use."""
    return moved(network, step, reads).steady()


def moved(
    network: Network, step: int, reads: Sequence[LayerReads | None], states: int = 0
) -> MovedWindow:
    """Return what stays when the window moves by ``step`` input rows.

    ``reads``: what each layer that is made row by row reads, None of others. ``states``: so many
    of the last inputs hold what the step before has made as the last outputs; such a network sees
    rows once. Raises :class:`InputError` where there is no axis of rows to move along, or no layer
    of which a row stays.
    """
    source = _source(network, states)
    height = network.rows(source)
    if states:
        return _keeping_states(network, step, tuple(reads), source, states)
    if height < 2:
        shape = "x".join(map(str, network.features[source].shape))
        raise InputError(f"{network.name}: its input of {shape} has no rows to slide along")
    if not 1 <= step < height:
        shape = "x".join(map(str, network.features[source].shape))
        raise InputError(
            f"--sliding {step}: the window of {shape} has {height} rows; a step of 1 to "
            f"{height - 1} shares rows with the window before"
        )
    shifts = [0] * len(network.features)
    same: list[frozenset[int]] = [frozenset()] * len(network.features)
    periods = [1] * len(network.features)
    shifts[source], same[source] = step, frozenset(range(height - step))
    anew: list[tuple[int, str]] = []
    for index, layer in enumerate(network.layers):
        if source in layer.outputs:
            continue
        now = _Now(shifts, periods, same)
        period, shift, rows = _moved(network, layer, reads[index], now)
        for f in layer.outputs:
            shifts[f], periods[f], same[f] = shift, period, rows
        if not shift and any(shifts[f] for f in layer.inputs):
            anew.append((index, _why(network, layer, reads[index], now)))
    if not any(shifts[f] for f in range(len(shifts)) if f != source):
        first, why = anew[0] if anew else (0, "it reads no rows")
        name = network.layers[first].name if network.layers else network.name
        raise InputError(f"--sliding {step}: nothing but input rows would stay: {name} {why}")
    far = tuple(shifts), tuple(periods), tuple(same)
    return MovedWindow(network, step, tuple(reads), source, *far, tuple(anew))


def _keeping_states(
    network: Network, step: int, reads: tuple[LayerReads | None, ...], source: int, states: int
) -> MovedWindow:
    """What stays of a network that keeps states itself: they do, and no row is seen twice."""
    height = network.rows(source)
    if step != height:
        raise InputError(
            f"--sliding {step}: {network.name} keeps {states} states itself, and each run takes in "
            f"rows that are all new: --sliding {height}"
        )
    kept = network.inputs[len(network.inputs) - states :]
    pairs = tuple(zip(kept, network.outputs[len(network.outputs) - states :], strict=True))
    features = range(len(network.features))
    same = tuple(frozenset(range(network.rows(f))) if f in kept else frozenset() for f in features)
    shifts = tuple(height if f == source else 0 for f in features)
    return MovedWindow(network, step, reads, source, shifts, (1,) * len(shifts), same, (), pairs)


def _source(network: Network, states: int) -> int:
    """The feature that the window is: the input, or its view by rows."""
    given = network.inputs[: len(network.inputs) - states]
    if len(given) != 1:
        names = ", ".join(network.features[f].name for f in given[:4])
        more = ", ..." if len(given) > 4 else ""
        raise InputError(
            f"{network.name}: has {len(given)} inputs ({names}{more}); --sliding takes one"
        )
    (source,) = given
    readers = network.readers[source]
    if network.rows(source) == 1 and len(readers) == 1 and network.layers[readers[0]].view:
        (source,) = network.layers[readers[0]].outputs
    return source


@dataclass(frozen=True)
class _Now:
    """How far the rows of every feature move in its period, and which are there again."""

    shifts: Sequence[int]
    periods: Sequence[int]
    same: Sequence[frozenset[int]]

    def after(self, steps: int, feature: int) -> tuple[int, frozenset[int]]:
        """The same after so many steps, a multiple of the feature's period."""
        shift, rows = self.shifts[feature], self.same[feature]
        times = steps // self.periods[feature]
        again = (y for y in rows if all(y + k * shift in rows for k in range(1, times)))
        return times * shift, frozenset(again)


def _moved(
    network: Network, layer: Layer, reads: LayerReads | None, now: _Now
) -> tuple[int, int, frozenset[int]]:
    """After how many steps the rows of a layer's outputs are there again, how far, and which.

    The fewest steps that let a row stay; (1, 0, none) where at most ``PHASES`` let none.
    """
    if reads is None or not all(now.shifts[f] for f in layer.inputs):
        return 1, 0, frozenset()
    once = lcm(*(now.periods[f] for f in layer.inputs))
    for period in range(once, PHASES + 1, once):
        shift, rows = _moved_in(network, layer, reads, now, period)
        if rows:
            return period, shift, rows
    return 1, 0, frozenset()


def _moved_in(
    network: Network, layer: Layer, reads: LayerReads, now: _Now, period: int
) -> tuple[int, frozenset[int]]:
    """How far the rows of a layer's outputs move in so many steps, and which are the same."""
    height = network.rows(layer.outputs[0])
    after = {f: now.after(period, f) for f in layer.inputs}
    shifts, same = {f: s for f, (s, _) in after.items()}, {f: r for f, (_, r) in after.items()}
    best: tuple[int, frozenset[int]] = (0, frozenset())
    for shift in _shifts(layer, reads, shifts):
        rows = frozenset(
            y for y in range(height - shift) if _alike(layer, reads, shifts, same, y, shift)
        )
        if len(rows) > len(best[1]):
            best = shift, rows
    return best


def _shifts(layer: Layer, reads: LayerReads, shifts: Mapping[int, int]) -> list[int]:
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
    shifts: Mapping[int, int],
    same: Mapping[int, frozenset[int]],
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


def _why(network: Network, layer: Layer, reads: LayerReads | None, now: _Now) -> str:
    """Why nothing that a layer makes stays, though it reads what does."""
    if layer.view or reads is None or layer.sums:
        return "takes all rows of the window together"
    gone = [f for f in layer.inputs if not now.shifts[f]]
    if gone:
        return f"also reads {network.features[gone[0]].name}, of which nothing stays"
    for position, feature in enumerate(layer.inputs):
        stride = _stride(reads, position)
        far, period = now.shifts[feature], now.periods[feature]
        steps = period * stride // gcd(far, stride) if stride else 1
        if steps > PHASES:
            return (
                f"makes a row for each {stride} rows of {network.features[feature].name}, which "
                f"move by {far}: the same ones after {steps} steps, more than {PHASES}"
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
