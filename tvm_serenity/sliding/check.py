"""Checks incremental steps against full windows, on symbols instead of numbers.

A row's symbol says how it is computed from rows of the stream: its layer, the kernel's variant, and
the symbols that it reads. Two rows have equal numbers if their symbols are equal. The check is
naive on purpose: it knows only the shifts of the blocks, and begins with poisoned memory.
"""

from collections.abc import Sequence
from typing import Any

from tvm_serenity.errors import CheckError
from tvm_serenity.rows.network import Layer
from tvm_serenity.sliding.steady import LayerReads, Steady
from tvm_serenity.sliding.step import SlidingStep

WINDOWS = 3
Symbols = dict[tuple[int, int], int]
"""The symbol of each row in memory, by feature and row."""


def check_windows(sliding: SlidingStep, reads: Sequence[LayerReads | None]) -> None:
    """Run steps from poisoned memory; raise :class:`CheckError` if a window is wrong.

    The outputs of the first full window and of the following ones must have the symbols that the
    full network gives them.
    """
    steady, numbers = sliding.steady, _Numbers()
    network, step = steady.network, steady.step
    memory = _before(steady, numbers)
    states, count = memory, len(steady.states)
    last = tuple(zip(reversed(network.inputs), reversed(network.outputs), strict=False))[:count]
    stores = {f: [_poison(steady, numbers, f)] * len(kept) for f, kept in sliding.stores.items()}
    height = network.rows(steady.source)
    calls = [sliding.streaming.banded.calls[op] for op in sliding.streaming.schedule.order]
    for number in range(1, steady.steps_to_fill + WINDOWS):
        end = number * step
        memory = _moved(steady, memory, stores, number - 1)
        for y in range(height - step, height):
            memory[steady.source, y] = numbers.of("stream", end - height + y)
        for call in calls:
            layer = network.layers[call.layer]
            _make(steady, numbers, memory, (call.layer, layer, reads[call.layer]), call.first)
        memory = _carried(steady, memory, steady.states)
        if number < steady.steps_to_fill:
            continue
        window = _window(steady, numbers, reads, end - height, states)
        states = _carried(steady, window, last)
        for f in network.outputs:
            root = _root(steady, f)
            for y in range(network.rows(root)):
                if memory.get((root, y)) != window[root, y]:
                    name = network.features[root].name
                    raise CheckError(
                        f"{name}: row {y} differs from the full network's after step {number}"
                    )


class _Numbers:
    """A number for each symbol, so that nested symbols stay small."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], int] = {}

    def of(self, *symbol: Any) -> int:
        return self.known.setdefault(symbol, len(self.known))


def _root(steady: Steady, feature: int) -> int:
    """Return the feature in memory of which this one is a view."""
    while True:
        maker = steady.network.producer.get(feature)
        layer = None if maker is None else steady.network.layers[maker]
        if layer is None or not layer.view or feature == steady.source:
            return feature
        (feature,) = layer.inputs


def _before(steady: Steady, numbers: _Numbers) -> Symbols:
    """Return the memory before the first step: poison, and the initial values of states."""
    memory: Symbols = {}
    for f, (first, end) in enumerate(steady.spans):
        memory |= {(f, y): numbers.of("poison", f, y) for y in range(first, end)}
    for f, _ in steady.states:
        memory |= {(f, y): numbers.of("first", f, y) for y in range(steady.network.rows(f))}
    return memory


def _poison(steady: Steady, numbers: _Numbers, feature: int) -> Symbols:
    """Return the poisoned rows that are stored of a feature at first."""
    far = steady.shifts[feature]
    rows = range(*steady.stored[feature])
    return {(feature, y - far): numbers.of("poison", feature, y) for y in rows}


def _moved(
    steady: Steady, memory: Symbols, stores: dict[int, list[Symbols]], number: int
) -> Symbols:
    """Return the blocks after their rows have moved up, or been exchanged with stored ones."""
    result: Symbols = {}
    for f, (first, end) in enumerate(steady.spans):
        far = steady.shifts[f]
        up = {(f, y): memory[f, y + far] for y in range(first, end - far) if (f, y + far) in memory}
        if f in stores:
            turn = number % len(stores[f])
            up, stores[f][turn] = stores[f][turn], up
        result |= up
    return result


def _carried(steady: Steady, memory: Symbols, states: Sequence[tuple[int, int]]) -> Symbols:
    """Return the memory after states have taken the values of the last outputs."""
    result = dict(memory)
    for f, made in states:
        root = _root(steady, made)
        result |= {(f, y): memory[root, y] for y in range(steady.network.rows(f))}
    return result


def _make(
    steady: Steady,
    numbers: _Numbers,
    memory: Symbols,
    made: tuple[int, Layer, LayerReads | None],
    y: int,
) -> None:
    """Compute row ``y`` of a layer, or its full output, or add row ``y`` to its sums."""
    index, layer, reads = made
    network = steady.network

    def symbol(feature: int, row: int) -> int:
        root = _root(steady, feature)
        if (root, row) not in memory:
            name = network.features[root].name
            raise CheckError(f"{layer.name}: it reads row {row} of {name}, which is not in memory")
        return memory[root, row]

    if layer.sums:
        (source,), (sums,) = layer.inputs, layer.outputs
        before = memory.get((sums, 0)) if y else None
        memory[sums, 0] = numbers.of(index, before, symbol(source, y))
    elif reads is None:
        shown = (_root(steady, f) for f in layer.inputs)
        rows = [symbol(f, row) for f in shown for row in range(network.rows(f))]
        for f in layer.outputs:
            for row in range(network.rows(f)):
                memory[f, row] = numbers.of(index, f, row, *rows)
    else:
        variant, read = reads.rows[y]
        pairs = zip(reads.inputs, read, strict=True)
        rows = [-1 if row is None else symbol(layer.inputs[i], row) for i, row in pairs]
        for f in layer.outputs:
            memory[f, y] = numbers.of(index, f, variant, *rows)


def _window(
    steady: Steady,
    numbers: _Numbers,
    reads: Sequence[LayerReads | None],
    start: int,
    states: Symbols,
) -> Symbols:
    """Return the symbols of the full network on the window that begins at row ``start``."""
    network = steady.network
    kept = {f for f, _ in steady.states}
    memory = {(f, y): symbol for (f, y), symbol in states.items() if f in kept}
    for y in range(network.rows(steady.source)):
        memory[steady.source, y] = numbers.of("stream", start + y)
    for index, layer in enumerate(network.layers):
        if layer.view:
            continue
        once = 1 if reads[index] is None and not layer.sums else steady.rows_in_all(index)
        for y in range(once):
            _make(steady, numbers, memory, (index, layer, reads[index]), y)
    return memory
