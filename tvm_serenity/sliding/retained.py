"""Finds the rows of each feature that an earlier window has already computed.

Window w covers rows ``w * step`` to ``w * step + height - 1`` of a stream. Row y of a feature
*recurs* if it equals row ``y + shift`` of the window before: the same kernel variant computes both
rows, from input rows that recur with the shift of their own feature. Rows at the edges of a window
read padding, which moves with the window. So they do not recur, and rows computed from them do not.

After a layer with a stride of 2, the rows of windows at odd steps differ from the rows at even
steps. Such a feature has a *period* of 2: its rows recur in the window two steps later, and two
sets of rows are retained, one for each phase of the stream.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd, lcm

from tvm_serenity.errors import InputError
from tvm_serenity.rows.network import Layer, Network
from tvm_serenity.sliding.steady import LayerReads, MovedWindow, Steady

PHASES = 8
"""The largest period of a feature in steps, and so the largest number of retained row sets."""


def steady(network: Network, step: int, reads: Sequence[LayerReads | None]) -> Steady:
    """Return the step of ``step`` input rows that retains all rows that it can."""
    return moved_window(network, step, reads).steady()


def moved_window(
    network: Network, step: int, reads: Sequence[LayerReads | None], states: int = 0
) -> MovedWindow:
    """Return the rows that recur when the window moves by ``step`` input rows.

    ``reads``: for each layer the rows that it reads, None if it does not run row by row.
    ``states``: the number of state inputs; they are the last inputs, and receive the values of as
    many last outputs of the previous step. A network with states reads each input row once. Raises
    :class:`InputError` if the input has no rows to move along, or if no layer has a row to retain.
    """
    source = _source(network, states)
    height = network.rows(source)
    if states:
        return _keeping_states(network, step, tuple(reads), source, states)
    if height < 2:
        shape = "x".join(map(str, network.features[source].shape))
        raise InputError(
            f"{network.name}: its input of {shape} has no rows along which a window could move; "
            "leave --sliding out"
        )
    if not 1 <= step < height:
        shape = "x".join(map(str, network.features[source].shape))
        raise InputError(
            f"--sliding {step}: the window of {shape} has {height} rows; use a step of 1 to "
            f"{height - 1} rows, so that neighbouring windows share rows"
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
        first, why = anew[0] if anew else (0, "reads no rows")
        name = network.layers[first].name if network.layers else network.name
        raise InputError(
            f"--sliding {step}: no row of a computed tensor could be retained, because {name} "
            f"{why}; try another step, or leave --sliding out"
        )
    recurrence = tuple(shifts), tuple(periods), tuple(same)
    return MovedWindow(network, step, tuple(reads), source, *recurrence, tuple(anew))


def _keeping_states(
    network: Network, step: int, reads: tuple[LayerReads | None, ...], source: int, states: int
) -> MovedWindow:
    """Return the recurring rows of a network that keeps states itself: the states' rows only."""
    height = network.rows(source)
    if step != height:
        raise InputError(
            f"--sliding {step}: {network.name} keeps {states} states itself, so each run needs "
            f"{height} new rows; use --sliding {height}"
        )
    kept = network.inputs[len(network.inputs) - states :]
    pairs = tuple(zip(kept, network.outputs[len(network.outputs) - states :], strict=True))
    features = range(len(network.features))
    same = tuple(frozenset(range(network.rows(f))) if f in kept else frozenset() for f in features)
    shifts = tuple(height if f == source else 0 for f in features)
    return MovedWindow(network, step, reads, source, shifts, (1,) * len(shifts), same, (), pairs)


def _source(network: Network, states: int) -> int:
    """Return the feature of the moving window: the input, or the view that gives it rows."""
    given = network.inputs[: len(network.inputs) - states]
    if len(given) != 1:
        names = ", ".join(network.features[f].name for f in given[:4])
        more = ", ..." if len(given) > 4 else ""
        raise InputError(
            f"{network.name}: it has {len(given)} inputs ({names}{more}), but --sliding needs a "
            "network with one input"
        )
    (source,) = given
    readers = network.readers[source]
    if network.rows(source) == 1 and len(readers) == 1 and network.layers[readers[0]].view:
        (source,) = network.layers[readers[0]].outputs
    return source


@dataclass(frozen=True)
class _Now:
    """The period, the shift per period, and the recurring rows of every feature so far."""

    shifts: Sequence[int]
    periods: Sequence[int]
    same: Sequence[frozenset[int]]

    def after(self, steps: int, feature: int) -> tuple[int, frozenset[int]]:
        """Return shift and recurring rows after ``steps``, a multiple of the feature's period."""
        shift, rows = self.shifts[feature], self.same[feature]
        times = steps // self.periods[feature]
        recurring = (y for y in rows if all(y + k * shift in rows for k in range(1, times)))
        return times * shift, frozenset(recurring)


def _moved(
    network: Network, layer: Layer, reads: LayerReads | None, now: _Now
) -> tuple[int, int, frozenset[int]]:
    """Return the period, the shift and the recurring rows of a layer's outputs.

    The period is the smallest one with a recurring row. Returns a period of 1, a shift of 0 and no
    rows if no row recurs within ``PHASES`` steps.
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
    """Return the shift of a layer's outputs in ``period`` steps, and the rows that recur.

    Of several possible shifts, the result is the one with the most recurring rows.
    """
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
    """Return the candidate shifts of a layer's outputs, ascending.

    For a candidate, at least one slot reads an input row in one output row, and the same input row
    shifted in a later output row.
    """
    candidates = set[int]()
    for slot, position in enumerate(reads.inputs):
        read = [rows[slot] for _, rows in reads.rows]
        readers: dict[int, list[int]] = {}
        for y, row in enumerate(read):
            if row is not None:
                readers.setdefault(row, []).append(y)
        moved_by = shifts[layer.inputs[position]]
        for y, row in enumerate(read):
            if row is not None:
                later_rows = readers.get(row + moved_by, ())
                candidates.update(later - y for later in later_rows if later > y)
    return sorted(candidates)


def _alike(
    layer: Layer,
    reads: LayerReads,
    shifts: Mapping[int, int],
    same: Mapping[int, frozenset[int]],
    y: int,
    shift: int,
) -> bool:
    """Return whether row ``y`` equals row ``y + shift`` of the window before."""
    (variant, rows), (variant_before, rows_before) = reads.rows[y], reads.rows[y + shift]
    if variant != variant_before:
        return False
    for position, row, before in zip(reads.inputs, rows, rows_before, strict=True):
        feature = layer.inputs[position]
        if row is None or before is None:
            if row is not before:
                return False
        elif before != row + shifts[feature] or row not in same[feature]:
            return False
    return True


def _why(network: Network, layer: Layer, reads: LayerReads | None, now: _Now) -> str:
    """Return the reason why no row of a layer recurs although rows of its inputs recur.

    The reason is a clause that begins with a verb; the layer is its subject.
    """
    if layer.view or reads is None or layer.sums:
        return "reads all rows of the window together"
    gone = [f for f in layer.inputs if not now.shifts[f]]
    if gone:
        return f"also reads {network.features[gone[0]].name}, which has no recurring rows"
    for position, feature in enumerate(layer.inputs):
        stride = _stride(reads, position)
        shift, period = now.shifts[feature], now.periods[feature]
        steps = period * stride // gcd(shift, stride) if stride else 1
        if steps > PHASES:
            return (
                f"has a stride of {stride} rows over {network.features[feature].name}, whose rows "
                f"move by {shift}, so rows recur after {steps} steps; at most {PHASES} are "
                "supported"
            )
    variants = [variant for variant, _ in reads.rows]
    if len(set(variants)) == len(variants) > 1:
        return (
            "computes each row by a different kernel variant, for example with a different constant"
        )
    return "reads padding, or rows next to it, for each of its rows"


def _stride(reads: LayerReads, position: int) -> int:
    """Return the number of rows by which an input's reads move per output row, 0 if it varies."""
    slot = reads.inputs.index(position)
    rows = [(y, r[1][slot]) for y, r in enumerate(reads.rows)]
    inside = [(y, row) for y, row in rows if row is not None]
    strides = {b - a for (i, a), (j, b) in pairwise(inside) if j == i + 1}
    return strides.pop() if len(strides) == 1 else 0
