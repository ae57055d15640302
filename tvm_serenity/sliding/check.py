"""Steps of a sliding window against whole windows, on symbols: no arithmetic, every window.

A row's symbol says what computes it, from which rows of the stream: its layer, the kernel's
variant, and the symbols it reads. Two rows are the same number for number if their symbols are.
Naive on purpose: it knows no shifts but those of the blocks, and begins with poison in all of
them.
"""

from collections.abc import Sequence
from typing import Any

from tvm_serenity.errors import CheckError
from tvm_serenity.rows.network import Layer
from tvm_serenity.sliding.steady import LayerReads, Steady
from tvm_serenity.sliding.step import SlidingStep

WINDOWS = 3
Symbols = dict[tuple[int, int], int]
"""The symbol of each row that is in memory, by feature and row."""


def check_windows(found: SlidingStep, reads: Sequence[LayerReads | None]) -> None:
    """Run steps from nothing on, in their order; :class:`CheckError` where a window is wrong.

    The outputs of the first window that is full and of the next ones must have the symbols that the
    whole network gives them.
    """
    steady, numbers = found.steady, _Numbers()
    network, step = steady.network, steady.step
    memory = _before(steady, numbers)
    states, count = memory, len(steady.states)
    last = tuple(zip(reversed(network.inputs), reversed(network.outputs), strict=False))[:count]
    stores = {f: [_poison(steady, numbers, f)] * len(kept) for f, kept in found.stores.items()}
    height = network.rows(steady.source)
    calls = [found.streaming.banded.calls[op] for op in found.streaming.schedule.order]
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
        whole = _window(steady, numbers, reads, end - height, states)
        states = _carried(steady, whole, last)
        for f in network.outputs:
            root = _root(steady, f)
            for y in range(network.rows(root)):
                if memory.get((root, y)) != whole[root, y]:
                    name = network.features[root].name
                    raise CheckError(f"{name}: row {y} is wrong after step {number}")


class _Numbers:
    """A number for each symbol, so that nested ones stay small."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], int] = {}

    def of(self, *symbol: Any) -> int:
        return self.known.setdefault(symbol, len(self.known))


def _root(steady: Steady, feature: int) -> int:
    """The feature that is in memory where this one shows its bytes."""
    while True:
        maker = steady.network.producer.get(feature)
        layer = None if maker is None else steady.network.layers[maker]
        if layer is None or not layer.view or feature == steady.source:
            return feature
        (feature,) = layer.inputs


def _before(steady: Steady, numbers: _Numbers) -> Symbols:
    """What is in memory before the first step: poison, and the first values of states."""
    memory: Symbols = {}
    for f, (first, end) in enumerate(steady.spans):
        memory |= {(f, y): numbers.of("poison", f, y) for y in range(first, end)}
    for f, _ in steady.states:
        memory |= {(f, y): numbers.of("first", f, y) for y in range(steady.network.rows(f))}
    return memory


def _poison(steady: Steady, numbers: _Numbers, feature: int) -> Symbols:
    """What is stored of a feature at first, by the rows that it is to be."""
    far = steady.shifts[feature]
    rows = range(*steady.stored[feature])
    return {(feature, y - far): numbers.of("poison", feature, y) for y in rows}


def _moved(
    steady: Steady, memory: Symbols, stores: dict[int, list[Symbols]], number: int
) -> Symbols:
    """What blocks hold after their rows have moved up, or changed places with stored ones."""
    found: Symbols = {}
    for f, (first, end) in enumerate(steady.spans):
        far = steady.shifts[f]
        up = {(f, y): memory[f, y + far] for y in range(first, end - far) if (f, y + far) in memory}
        if f in stores:
            turn = number % len(stores[f])
            up, stores[f][turn] = stores[f][turn], up
        found |= up
    return found


def _carried(steady: Steady, memory: Symbols, states: Sequence[tuple[int, int]]) -> Symbols:
    """The same after states have become what the last outputs are."""
    found = dict(memory)
    for f, made in states:
        root = _root(steady, made)
        found |= {(f, y): memory[root, y] for y in range(steady.network.rows(f))}
    return found


def _make(
    steady: Steady,
    numbers: _Numbers,
    memory: Symbols,
    made: tuple[int, Layer, LayerReads | None],
    y: int,
) -> None:
    """Make row y of a layer, or all of it, or take row y into its sums."""
    index, layer, reads = made
    network = steady.network

    def symbol(feature: int, row: int) -> int:
        root = _root(steady, feature)
        if (root, row) not in memory:
            name = network.features[root].name
            raise CheckError(f"{layer.name}: row {row} of {name} is not in memory")
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
    """The symbols of the whole network on the window that begins at row ``start``."""
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
