"""Checks incremental steps against full windows, on symbols instead of numbers.

The symbol of a row says how the row is computed from rows of the stream: the layer, the kernel's
variant, and the symbols of the rows that it reads. Rows with equal symbols hold equal numbers. The
check is naive on purpose: it uses only the shifts of the blocks, and begins with poisoned memory.
"""

from collections.abc import Sequence
from typing import Any

from tvm_serenity.errors import CheckError
from tvm_serenity.rows.network import Layer
from tvm_serenity.sliding.steady import LayerReads, Steady
from tvm_serenity.sliding.step import SlidingStep

WINDOWS = 3
"""Number of full windows that are checked."""
Symbols = dict[tuple[int, int], int]
"""Maps feature and row to the symbol of the row in memory."""


def check_windows(sliding: SlidingStep, reads: Sequence[LayerReads | None]) -> None:
    """Run steps from poisoned memory, and compare the outputs with the full network's.

    The symbols of the outputs of ``WINDOWS`` full windows must be those that the full network
    computes. Raises :class:`CheckError` for the first row that differs.
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
                        f"{name}: after incremental step {number}, row {y} differs from the row "
                        "that the full network computes"
                    )


class _Numbers:
    """Assigns a number to each symbol, so that nested symbols stay small."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], int] = {}

    def of(self, *symbol: Any) -> int:
        return self.known.setdefault(symbol, len(self.known))


def _root(steady: Steady, feature: int) -> int:
    """Return the feature whose memory ``feature`` is a view of, or ``feature`` itself."""
    while True:
        maker = steady.network.producer.get(feature)
        layer = None if maker is None else steady.network.layers[maker]
        if layer is None or not layer.view or feature == steady.source:
            return feature
        (feature,) = layer.inputs


def _before(steady: Steady, numbers: _Numbers) -> Symbols:
    """Return the memory before the first step: poisoned, except for the values of states."""
    memory: Symbols = {}
    for f, (first, end) in enumerate(steady.spans):
        memory |= {(f, y): numbers.of("poison", f, y) for y in range(first, end)}
    for f, _ in steady.states:
        memory |= {(f, y): numbers.of("first", f, y) for y in range(steady.network.rows(f))}
    return memory


def _poison(steady: Steady, numbers: _Numbers, feature: int) -> Symbols:
    """Return the initial content of a feature's store for another phase: poisoned rows."""
    shift = steady.shifts[feature]
    rows = range(*steady.stored[feature])
    return {(feature, y - shift): numbers.of("poison", feature, y) for y in rows}


def _moved(
    steady: Steady, memory: Symbols, stores: dict[int, list[Symbols]], number: int
) -> Symbols:
    """Return the memory at the start of a step: the rows of each block have moved up.

    A feature with several phases then exchanges its rows with those stored for the next phase.
    """
    result: Symbols = {}
    for f, (first, end) in enumerate(steady.spans):
        shift = steady.shifts[f]
        rows = range(first, end - shift)
        moved = {(f, y): memory[f, y + shift] for y in rows if (f, y + shift) in memory}
        if f in stores:
            phase = number % len(stores[f])
            moved, stores[f][phase] = stores[f][phase], moved
        result |= moved
    return result


def _carried(steady: Steady, memory: Symbols, states: Sequence[tuple[int, int]]) -> Symbols:
    """Return the memory after each state has been set to its output."""
    result = dict(memory)
    for f, output in states:
        root = _root(steady, output)
        result |= {(f, y): memory[root, y] for y in range(steady.network.rows(f))}
    return result


def _make(
    steady: Steady,
    numbers: _Numbers,
    memory: Symbols,
    call: tuple[int, Layer, LayerReads | None],
    y: int,
) -> None:
    """Write the symbols that one call of a layer computes to ``memory``.

    The call computes output row ``y``, or the full output of an unsplit layer, or adds input row
    ``y`` to the sums.
    """
    index, layer, reads = call
    network = steady.network

    def symbol(feature: int, row: int) -> int:
        root = _root(steady, feature)
        if (root, row) not in memory:
            name = network.features[root].name
            raise CheckError(
                f"{layer.name}: the incremental step reads row {row} of {name}, which is not in "
                "memory"
            )
        return memory[root, row]

    if layer.sums:
        (source,), (sums,) = layer.inputs, layer.outputs
        before = memory.get((sums, 0)) if y else None
        memory[sums, 0] = numbers.of(index, before, symbol(source, y))
    elif reads is None:
        sources = (_root(steady, f) for f in layer.inputs)
        rows = [symbol(f, row) for f in sources for row in range(network.rows(f))]
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
    """Compute every row of the full network as a symbol; return the symbols by feature and row.

    The input is the window of the stream that begins at row ``start``.
    """
    network = steady.network
    kept = {f for f, _ in steady.states}
    memory = {(f, y): symbol for (f, y), symbol in states.items() if f in kept}
    for y in range(network.rows(steady.source)):
        memory[steady.source, y] = numbers.of("stream", start + y)
    for index, layer in enumerate(network.layers):
        if layer.view:
            continue
        calls = 1 if reads[index] is None and not layer.sums else steady.rows_in_all(index)
        for y in range(calls):
            _make(steady, numbers, memory, (index, layer, reads[index]), y)
    return memory
