"""The sums of a register tile of dot products: its registers, and the steps that add to it.

A tile covers some columns and vectors of channels. Its registers are vectors of 32-bit sums, one
per column and vector. A unit that multiplies several columns at once keeps them in its own order
until they are rearranged (``kernels.dot_units``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity.kernels.arithmetic import i32
from tvm_serenity.kernels.dot_shapes import Tile
from tvm_serenity.kernels.dot_units import Unit
from tvm_serenity.kernels.packed import TapRow, correction, row_of, unit_of, zero_of
from tvm_serenity.kernels.records import Packed


@dataclass(frozen=True)
class TilePlace:
    """The place of a tile: row ``(n, y)``, columns from ``x``, vectors from ``first``.

    ``inside``: for each column and tap along the row whether it is in the image; None: all are.
    """

    n: Any
    y: Any
    x: Any
    first: Any
    tile: Tile
    inside: tuple[tuple[bool, ...], ...] | None = None


def has_extra(spec: Packed) -> bool:
    """Return whether sums need the sum of their values, times the weights' correction."""
    return unit_of(spec).kind != "madd" and correction(spec) != 0


@dataclass(frozen=True)
class TiledKernel:
    """The kernel's buffers as flat memory, and its extents in rows of pixels."""

    spec: Packed
    unit: Unit
    sources: tuple[Any, ...]
    weight: Any
    bias: Any
    constants: tuple[Any, ...]
    out: Any
    steps: Any
    tile: Tile
    image: tuple[int, int, int]
    result: tuple[int, int, int]

    @property
    def extra(self) -> bool:
        """Whether a column needs one more sum, of its values."""
        return has_extra(self.spec)

    @property
    def taps(self) -> int:
        """The number of weight groups of one vector."""
        return self.spec.weight_shape[0] * row_of(self.spec).count


@dataclass(frozen=True)
class TileSums:
    """A tile's registers: ``totals[column][vector]``, padded to a multiple of the unit's columns.

    ``values``: the sum of each column's values, for corrected weights (otherwise empty); until
    rearranged, one register holds all columns of the unit.
    """

    totals: tuple[tuple[Any, ...], ...]
    values: tuple[Any, ...]


def begun(kernel: TiledKernel, place: TilePlace) -> TileSums:
    """Emit a tile's registers, initialised with the bias, and return them."""
    tile, unit = place.tile, kernel.unit
    every, shared = tirx.Ramp(0, 1, unit.lanes), range(-(-tile.columns // unit.columns))
    columns = range(len(shared) * unit.columns)
    totals = tuple(tuple(_register(unit.lanes) for _ in range(tile.vectors)) for _ in columns)
    values = tuple(_register(unit.lanes) for _ in shared if kernel.extra)
    for v in range(tile.vectors):
        held = kernel.bias[tirx.Ramp((place.first + v) * unit.lanes, 1, unit.lanes)]
        for j, column in enumerate(totals):
            T.buffer_store(column[v], unit.begun(held, j % unit.columns), [every])
    for value in values:
        T.buffer_store(value, tirx.Broadcast(i32(0), unit.lanes), [every])
    return TileSums(totals, values)


def rearranged(kernel: TiledKernel, sums: TileSums) -> TileSums:
    """Emit the collection of each column's sums, and return them."""
    unit = kernel.unit
    if unit.columns == 1:
        return sums
    every = tirx.Ramp(0, 1, unit.lanes)

    def of(parts: Sequence[Any], column: int) -> Any:
        made = _register(unit.lanes)
        T.buffer_store(made, unit.rearranged([part[every] for part in parts], column), [every])
        return made

    totals = []
    for first in range(0, len(sums.totals), unit.columns):
        shared = list(zip(*sums.totals[first : first + unit.columns], strict=True))
        totals += [tuple(of(parts, i) for parts in shared) for i in range(unit.columns)]
    values = [of([v] * unit.columns, i) for v in sums.values for i in range(unit.columns)]
    return TileSums(tuple(totals), tuple(values))


def _register(lanes: int) -> Any:
    """Return a vector of sums.

    TVM allocates small buffers on the stack; LLVM moves this one to a register.
    """
    return T.alloc_buffer((lanes,), "int32")


def add_taps(kernel: TiledKernel, place: TilePlace, sums: TileSums, ky: Any, row: Any) -> None:
    """Emit the taps of one row of the window; ``row`` None: all are outside."""
    spec, group, cut = kernel.spec, kernel.unit.group, row_of(kernel.spec)
    whole = len(cut.channels) == 1 and cut.channels[0] % group == 0
    if whole and (row is None or (place.inside is None and spec.dilation[1] == 1)):
        runs = [(0, 0, 0, cut.count)]  # taps follow each other, in weights and in pixels
    else:
        runs = list(_runs(cut))
    for piece, kx, first, count in runs:
        partial = cut.channels[piece] % group
        full = count - bool(partial)
        where = _Steps(place, row, piece, kx, ky * cut.count + first)
        _full_steps(kernel, where, sums, full)
        if partial:
            _step(kernel, where, sums, i32(full), partial)


def _full_steps(kernel: TiledKernel, run: "_Steps", sums: TileSums, count: int) -> None:
    """Emit the full groups of a run, loading as many at once as the unit can."""
    unit, row = kernel.unit, row_of(kernel.spec)
    several = unit.at_once if _all_within(kernel, run) else 1
    whole = count // several
    if row.pixels > 1:
        for step in range(whole):
            _steps(kernel, run, sums, i32(step * several), several)
    elif whole:
        with T.serial(whole) as step:
            _steps(kernel, run, sums, step * several, several)
    for step in range(whole * several, count):
        _step(kernel, run, sums, i32(step), unit.group)


def _runs(row: TapRow) -> Iterator[tuple[int, int, int, int]]:
    """Yield piece, tap, first weight step and number of steps of each run."""
    for kx in range(row.taps):
        first = kx * sum(row.steps)
        for piece, count in enumerate(row.steps):
            yield piece, kx, first, count
            first += count


@dataclass(frozen=True)
class _Steps:
    """A run of steps: its tile, input row, piece and tap; ``at``: its position in the weights."""

    place: TilePlace
    row: Any
    piece: int
    kx: int
    at: Any


def _steps(kernel: TiledKernel, run: _Steps, sums: TileSums, first: Any, count: int) -> None:
    """Emit steps of full groups that are loaded together."""
    unit, columns = kernel.unit, range(run.place.tile.columns)
    if count == 1:
        _step(kernel, run, sums, first, unit.group)
        return
    source, dtype = kernel.sources[run.piece], kernel.spec.dtype
    held = [unit.several(source, _address(kernel, run, j, first), dtype) for j in columns]
    for i in range(count):
        _add(kernel, run, sums, first + i, ([words[i] for words in held], unit.group))


def _step(kernel: TiledKernel, run: _Steps, sums: TileSums, step: Any, count: int) -> None:
    """Emit one step of all columns and vectors."""
    columns = range(run.place.tile.columns)
    _add(kernel, run, sums, step, ([_values(kernel, run, j, step, count) for j in columns], count))


def _add(
    kernel: TiledKernel, run: _Steps, sums: TileSums, step: Any, given: tuple[list[Any], int]
) -> None:
    """Emit the products of a step; ``given``: a group per column, and its number of values."""
    (words, count), unit, dtype = given, kernel.unit, kernel.spec.dtype
    weights = []
    for v in range(run.place.tile.vectors):
        at = ((run.place.first + v) * kernel.taps + run.at + step) * (unit.lanes * unit.group)
        weights.append(unit.weights(kernel.weight, at, correction(kernel.spec)))
    every = tirx.Ramp(0, 1, unit.lanes)

    def add(total: Any, held: Any, weight: Any) -> None:
        T.buffer_store(total, unit.add(total[every], held, weight, dtype), [every])

    for first in range(0, len(words), unit.columns):
        held = unit.spread(words[first : first + unit.columns])
        for v, parts in enumerate(weights):
            for i, weight in enumerate(parts):
                add(sums.totals[first + i][v], held, weight)
        if sums.values:
            add(sums.values[first // unit.columns], held, unit.ones(count))


def _values(kernel: TiledKernel, run: _Steps, column: int, step: Any, count: int) -> Any:
    """Return ``count`` values of a column at a step; the stored zero outside of the image."""
    spec, unit = kernel.spec, kernel.unit
    within = _within(kernel, run, column, step, count)
    if not any(within):
        zero = _zero(kernel, run)
        if zero is not None:
            return unit.gathered([zero] * count, 0, spec.dtype)
        return unit.same(spec.input_zero, count, spec.dtype)
    source, at = kernel.sources[run.piece], _address(kernel, run, column, step)
    if all(within):
        return unit.values(source, at, count, spec.dtype)
    outside = _zero(kernel, run)
    single = [source[at + i] if inside else outside for i, inside in enumerate(within)]
    return unit.gathered(single, spec.input_zero, spec.dtype)


def _zero(kernel: TiledKernel, run: _Steps) -> Any:
    """Return the stored zero if it is known only at run time, otherwise None."""
    finish = kernel.spec.on_the_fly
    if finish is None or not finish.asymmetric:
        return None
    return zero_of(kernel.spec, kernel.steps, run.place.n)


def _within(kernel: TiledKernel, run: _Steps, column: int, step: Any, count: int) -> list[bool]:
    """Return for each value whether it is in the image."""
    if run.row is None or run.place.inside is None:
        return [run.row is not None] * count
    inside, row = run.place.inside[column], row_of(kernel.spec)
    if row.pixels == 1:
        return [inside[run.kx]] * count
    channels, first = row.channels[0] // row.pixels, int(step) * kernel.unit.group
    return [inside[(first + i) // channels] for i in range(count)]


def _all_within(kernel: TiledKernel, run: _Steps) -> bool:
    """Return whether all values of a run's columns are in the image."""
    if run.row is None or run.place.inside is None:
        return run.row is not None
    joined = row_of(kernel.spec).pixels > 1
    return all(all(taps) if joined else taps[run.kx] for taps in run.place.inside)


def _address(kernel: TiledKernel, run: _Steps, column: int, step: Any) -> Any:
    spec, place = kernel.spec, run.place
    channels = spec.sizes(spec.pieces[run.piece])[3]
    _, height, width = kernel.image
    x = (place.x + column) * spec.strides[1] + (run.kx * spec.dilation[1] - spec.padding[1])
    return ((place.n * height + run.row) * width + x) * channels + step * kernel.unit.group
