"""Packed convolutions and dense layers in register tiles of dot products.

    for each row of the result, for each block of its channels, for each tile of its columns:
        sums[columns][vectors] = bias                       # registers
        for each tap, for each step of ``group`` input channels:
            for each vector: weights                        # one load for all columns
            for each column: values, spread over the lanes; sums += values . weights
        result = epilogue(sums)

Columns whose window hangs over the image's left or right end are tiles of their own, where each
tap is known to be inside or not; rows above and below are asked for once a row of taps. Outside,
taps read the stored zero. Sums wrap around, so their order is no matter: results are those of
``kernels.packed`` bit for bit. No memory is used beside the tensors.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity.kernels.arithmetic import i32
from tvm_serenity.kernels.build import written
from tvm_serenity.kernels.dot_units import Tile, Unit, tiles_for
from tvm_serenity.kernels.packed import (
    TapRow,
    correction,
    finish_of,
    parameters,
    row_of,
    unit_of,
    vectors,
    zero_of,
)
from tvm_serenity.kernels.records import Packed
from tvm_serenity.kernels.spec import described

MOST_ROWS, LEAST_ROW = 16, 96
"""Pixels of a 1 x 1 convolution are made into up to so many rows, of at least so many pixels."""


def dot_tiles(spec: Packed, tile: Tile | None = None) -> Any:
    """Return the kernel of ``kernels.packed`` in tiles: the best of :func:`tiles_of`, or ``tile``.

    Any tile reads the same weights, in the same packing.
    """
    kept = tile or tiles_of(spec)[0]
    return described(written(parameters(spec), lambda *buffers: _emit(spec, buffers, kept)), spec)


def tiles_of(spec: Packed) -> list[Tile]:
    """Return the tiles that a layer may have, those of the fewest estimated cycles first."""
    columns = _extents(spec)[1][2]
    return tiles_for(unit_of(spec), columns, vectors(spec), _has_extra(spec))


def _has_extra(spec: Packed) -> bool:
    """Whether sums need the sum of their values, times the weights' correction."""
    return unit_of(spec).kind != "madd" and correction(spec) != 0


def _extents(spec: Packed) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Images, rows and columns of the input and of the result, as a row of pixels sees them."""
    n, height, width, _ = spec.sizes(spec.pieces[0])
    _, rows, columns, _ = spec.output_shape
    single = spec.weight_shape[:2] == (1, 1) and spec.strides == (1, 1)
    if single and not any(spec.padding) and (n == 1 or spec.on_the_fly is None):
        long = (1, *_long_rows(n * height * width))
        return long, long
    return (n, height, width), (n, rows, columns)


@dataclass(frozen=True)
class _Place:
    """What a tile computes: row ``(n, y)``, columns from ``x``, vectors from ``first``.

    ``inside``: of each column and tap along the row whether it lies in the image; None: all do.
    """

    n: Any
    y: Any
    x: Any
    first: Any
    tile: Tile
    inside: tuple[tuple[bool, ...], ...] | None = None


@dataclass(frozen=True)
class _Kernel:
    """The kernel's buffers as flat memory, and its extents as a row of pixels sees them."""

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
        return _has_extra(self.spec)

    @property
    def taps(self) -> int:
        """Groups of weights of one vector."""
        return self.spec.weight_shape[0] * row_of(self.spec).count


def _emit(spec: Packed, buffers: Sequence[Any], tile: Tile) -> None:
    def flat(buffer: Any, name: str) -> Any:
        shape, dtype = parameters(spec)[name]
        size = 1
        for extent in shape:
            size *= extent
        return T.decl_buffer((size,), dtype, data=buffer.data)

    held = [flat(b, name) for b, name in zip(buffers, parameters(spec), strict=True)]
    pieces, on_the_fly = len(spec.pieces), spec.on_the_fly is not None
    steps = buffers[pieces] if on_the_fly else None
    weight = pieces + on_the_fly
    image, result = _extents(spec)
    kernel = _Kernel(
        spec=spec,
        unit=unit_of(spec),
        sources=tuple(held[:pieces]),
        weight=held[weight],
        bias=held[weight + 1],
        constants=tuple(held[weight + 2 : -1]),
        out=held[-1],
        steps=steps,
        tile=tile,
        image=image,
        result=result,
    )
    _rows(kernel)


def _long_rows(pixels: int) -> tuple[int, int]:
    """Rows and columns of pixels that need no order: few rows, which threads may share out."""
    fit = [d for d in range(1, MOST_ROWS + 1) if pixels % d == 0 and pixels // d >= LEAST_ROW]
    rows = max(fit, default=1)
    return rows, pixels // rows


def _rows(kernel: _Kernel) -> None:
    """Emit all rows, blocks of channels and tiles of columns."""
    images, rows, _ = kernel.result
    count = vectors(kernel.spec)
    tile = kernel.tile
    whole = kernel.spec.channels // kernel.unit.lanes // tile.vectors
    rest = count - whole * tile.vectors
    with T.serial(images) as n, T.serial(rows) as y:
        if whole:
            with T.serial(whole) as block:
                _row(kernel, _Place(n, y, i32(0), block * tile.vectors, tile))
        if rest:
            last = replace(tile, vectors=rest)
            _row(kernel, _Place(n, y, i32(0), i32(whole * tile.vectors), last))


def _row(kernel: _Kernel, place: _Place) -> None:
    """Emit the tiles of one row: those at the ends one by one, the others in a loop."""
    width, columns = place.tile.columns, kernel.result[2]
    starts = [min(x, columns - width) for x in range(0, columns, width)]
    tables = [_table(kernel, x, width) for x in starts]
    within = [i for i, table in enumerate(tables) if table is None]
    for i, (x, table) in enumerate(zip(starts, tables, strict=True)):
        if table is not None or len(within) == 1:
            _tile(kernel, replace(place, x=i32(x), inside=table))
        elif i == within[0]:
            with T.serial(len(within)) as t:
                first = tirx.min(t * width + i32(x), i32(starts[within[-1]]))
                _tile(kernel, replace(place, x=first))


def _table(kernel: _Kernel, start: int, width: int) -> tuple[tuple[bool, ...], ...] | None:
    spec = kernel.spec
    left, stride, dilation = spec.padding[1], spec.strides[1], spec.dilation[1]

    def inside(x: int, kx: int) -> bool:
        return 0 <= x * stride + kx * dilation - left < kernel.image[2]

    taps = range(spec.weight_shape[1])
    table = tuple(tuple(inside(start + j, kx) for kx in taps) for j in range(width))
    return None if all(map(all, table)) else table


def _tile(kernel: _Kernel, place: _Place) -> None:
    """Emit one tile: begin with the bias, sum up, finish."""
    tile, lanes = place.tile, kernel.unit.lanes
    every = tirx.Ramp(0, 1, lanes)
    sums = [[_register(lanes) for _ in range(tile.vectors)] for _ in range(tile.columns)]
    values = [_register(lanes) for _ in sums] if kernel.extra else None
    for v in range(tile.vectors):
        held = kernel.bias[tirx.Ramp((place.first + v) * lanes, 1, lanes)]
        for column in sums:
            T.buffer_store(column[v], held, [every])
    for value in values or []:
        T.buffer_store(value, tirx.Broadcast(i32(0), lanes), [every])
    spec = kernel.spec
    with T.serial(spec.weight_shape[0]) as ky:
        row = place.y * spec.strides[0] + ky * spec.dilation[0] - spec.padding[0]
        _either(
            _row_inside(kernel, row),
            lambda: _taps(kernel, place, (sums, values), ky, row),
            lambda: _taps(kernel, place, (sums, values), ky, None),
        )
    _finish(kernel, place, sums, values)


def _register(lanes: int) -> Any:
    """A vector of sums, which TVM puts on the stack as it is small, and LLVM into a register."""
    return T.alloc_buffer((lanes,), "int32")


def _row_inside(kernel: _Kernel, row: Any) -> Any:
    """The condition that a row of the input is one of the image's; None where it always is."""
    top, _, bottom, _ = kernel.spec.padding
    found = [row >= 0] if top else []
    found += [row < kernel.image[1]] if bottom else []
    return tirx.all(*found) if found else None


def _either(condition: Any, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
    if condition is None:
        then()
        return
    with T.If(condition):
        with T.Then():
            then()
        with T.Else():
            otherwise()


def _taps(kernel: _Kernel, place: _Place, sums: Any, ky: Any, row: Any) -> None:
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
        if cut.pixels > 1:
            for step in range(full):
                _step(kernel, where, sums, i32(step), group)
        elif full:
            with T.serial(full) as step:
                _step(kernel, where, sums, step, group)
        if partial:
            _step(kernel, where, sums, i32(full), partial)


def _runs(row: TapRow) -> Iterator[tuple[int, int, int, int]]:
    """Piece, tap, the first step of weights, and how many there are."""
    for kx in range(row.taps):
        first = kx * sum(row.steps)
        for piece, count in enumerate(row.steps):
            yield piece, kx, first, count
            first += count


@dataclass(frozen=True)
class _Steps:
    """A run of steps: of which tile, row of the input, piece, tap; ``at`` in the weights."""

    place: _Place
    row: Any
    piece: int
    kx: int
    at: Any


def _step(kernel: _Kernel, run: _Steps, sums: Any, step: Any, count: int) -> None:
    """Emit one step of all columns and vectors."""
    spec, unit, place = kernel.spec, kernel.unit, run.place
    totals, values = sums
    lanes, size = unit.lanes, unit.lanes * unit.group
    weights = []
    for v in range(place.tile.vectors):
        at = ((place.first + v) * kernel.taps + run.at + step) * size
        weights.append(unit.weights(kernel.weight, at, correction(spec)))
    every = tirx.Ramp(0, 1, lanes)
    for j in range(place.tile.columns):
        held = _values(kernel, run, j, step, count)
        for total, weight in zip(totals[j], weights, strict=True):
            T.buffer_store(total, unit.add(total[every], held, weight), [every])
        if values is not None:
            added = unit.add(values[j][every], held, unit.ones(count))
            T.buffer_store(values[j], added, [every])


def _values(kernel: _Kernel, run: _Steps, column: int, step: Any, count: int) -> Any:
    """``count`` values of a column at a step; outside of the image the stored zero."""
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


def _zero(kernel: _Kernel, run: _Steps) -> Any:
    """What zero is stored as, where that is known only as the network runs; else None."""
    finish = kernel.spec.on_the_fly
    if finish is None or not finish.asymmetric:
        return None
    return zero_of(kernel.spec, kernel.steps, run.place.n)


def _within(kernel: _Kernel, run: _Steps, column: int, step: Any, count: int) -> list[bool]:
    """Of each value whether it lies in the image."""
    if run.row is None or run.place.inside is None:
        return [run.row is not None] * count
    inside, row = run.place.inside[column], row_of(kernel.spec)
    if row.pixels == 1:
        return [inside[run.kx]] * count
    channels, first = row.channels[0] // row.pixels, int(step) * kernel.unit.group
    return [inside[(first + i) // channels] for i in range(count)]


def _address(kernel: _Kernel, run: _Steps, column: int, step: Any) -> Any:
    spec, place = kernel.spec, run.place
    channels = spec.sizes(spec.pieces[run.piece])[3]
    _, height, width = kernel.image
    x = (place.x + column) * spec.strides[1] + (run.kx * spec.dilation[1] - spec.padding[1])
    return ((place.n * height + run.row) * width + x) * channels + step * kernel.unit.group


def _finish(kernel: _Kernel, place: _Place, sums: Any, values: Any) -> None:
    """Emit what stores the sums of a tile."""
    spec, lanes = kernel.spec, kernel.unit.lanes
    finish = finish_of(spec, kernel.steps, kernel.constants)
    _, rows, columns = kernel.result
    for j in range(place.tile.columns):
        pixel = (place.n * rows + place.y) * columns + place.x + j
        for v in range(place.tile.vectors):
            channel = (place.first + v) * lanes

            def value(lane: Any, j: int = j, v: int = v, channel: Any = channel) -> Any:
                total = sums[j][v][lane]
                if values is not None:
                    total = total + values[j][lane] * i32(correction(spec))
                return finish(total, channel + lane, place.x + j if spec.dense else place.n)

            _stored(kernel, value, pixel * spec.channels + channel, _lanes_of(kernel, place, v))


def _stored(kernel: _Kernel, value: Callable[[Any], Any], at: Any, count: int) -> None:
    """Emit what stores a vector of results: of the last one, ``count`` lanes are channels."""
    lanes = kernel.unit.lanes
    if count == lanes:
        with T.vectorized(lanes) as lane:
            T.buffer_store(kernel.out, value(lane), [at + lane])
        return
    made = T.alloc_buffer((lanes,), kernel.spec.finish.dtype)
    with T.vectorized(lanes) as lane:
        T.buffer_store(made, value(lane), [lane])
    for lane in range(count):
        T.buffer_store(kernel.out, made[lane], [at + lane])


def _lanes_of(kernel: _Kernel, place: _Place, v: int) -> int:
    """How many lanes of a tile's vector are channels: of the last one, which no loop makes, few."""
    lanes, rest = kernel.unit.lanes, kernel.spec.channels % kernel.unit.lanes
    last = isinstance(place.first, tirx.IntImm) and int(place.first) + v == vectors(kernel.spec) - 1
    return rest if rest and last else lanes
