"""Packed convolutions and dense layers in register tiles of dot products.

    for each row of the result, for each block of its channels, for each tile of its columns:
        sums[columns][vectors] = bias                       # registers
        for each tap, for each step of ``group`` input channels:
            for each vector: weights                        # one load for all columns
            for each column: values, spread over the lanes; sums += values . weights
        result = epilogue(sums)

Columns whose window extends beyond the image on the left or right are separate tiles, in which it
is known for each tap whether it is inside; rows above and below are tested once per row of taps.
Taps outside read the stored zero. Sums wrap, so that their order does not matter: results are
bit-identical to those of ``kernels.packed``. No memory is used beside the tensors.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity.kernels.arithmetic import i32
from tvm_serenity.kernels.build import written
from tvm_serenity.kernels.dot_shapes import Tile, best_tile, tiles_for
from tvm_serenity.kernels.dot_steps import (
    TiledKernel,
    TilePlace,
    TileSums,
    add_taps,
    begun,
    has_extra,
    rearranged,
)
from tvm_serenity.kernels.packed import (
    correction,
    finish_of,
    parameters,
    row_of,
    unit_of,
    vectors,
)
from tvm_serenity.kernels.records import Packed
from tvm_serenity.kernels.spec import described

MOST_ROWS, LEAST_ROW = 16, 96
"""Pixels of a 1 x 1 convolution are regrouped to at most this many rows of at least this length."""


def dot_tiles(spec: Packed, tile: Tile | None = None) -> Any:
    """Return the tiled kernel of ``kernels.packed``, in the best tile or in ``tile``.

    All tiles read the same packed weights.
    """
    kept = tile or tiles_of(spec)[0]
    return described(written(parameters(spec), lambda *buffers: _emit(spec, buffers, kept)), spec)


def tiles_of(spec: Packed) -> list[Tile]:
    """Return the tiles of a layer by increasing estimated cycles."""
    columns = _extents(spec)[1][2]
    return tiles_for(unit_of(spec), columns, vectors(spec), has_extra(spec))


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
    kernel = TiledKernel(
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


def _extents(spec: Packed) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Return the images, rows and columns of input and result in iteration order."""
    n, height, width, _ = spec.sizes(spec.pieces[0])
    single = spec.weight_shape[:2] == (1, 1) and spec.strides == (1, 1)
    if single and not any(spec.padding) and (n == 1 or spec.on_the_fly is None):
        pixels = (1, *_long_rows(n * height * width))
        return pixels, pixels
    _, rows, columns, _ = spec.output_shape
    return (n, height, width), (n, rows, columns)


def cycles(spec: Packed) -> float:
    """Return an estimate of the cycles of a layer's products, to select a unit of its target."""
    (images, rows, columns), unit = _extents(spec)[1], unit_of(spec)
    steps = images * rows * spec.weight_shape[0] * row_of(spec).count
    return steps * best_tile(unit, columns, vectors(spec), has_extra(spec))[0]


def _long_rows(pixels: int) -> tuple[int, int]:
    """Return rows and columns for pixels in any order: few long rows, shared by threads."""
    fit = [d for d in range(1, MOST_ROWS + 1) if pixels % d == 0 and pixels // d >= LEAST_ROW]
    rows = max(fit, default=1)
    return rows, pixels // rows


def _rows(kernel: TiledKernel) -> None:
    """Emit all rows, blocks of channels and tiles of columns."""
    images, rows, _ = kernel.result
    count, tile = vectors(kernel.spec), kernel.tile
    whole = kernel.spec.channels // kernel.unit.lanes // tile.vectors
    rest = count - whole * tile.vectors
    with T.serial(images) as n, T.serial(rows) as y:
        if whole:
            with T.serial(whole) as block:
                _row(kernel, TilePlace(n, y, i32(0), block * tile.vectors, tile))
        if rest:
            last = replace(tile, vectors=rest)
            _row(kernel, TilePlace(n, y, i32(0), i32(whole * tile.vectors), last))


def _row(kernel: TiledKernel, place: TilePlace) -> None:
    """Emit the tiles of one row: border tiles individually, the others in a loop."""
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


def _table(kernel: TiledKernel, start: int, width: int) -> tuple[tuple[bool, ...], ...] | None:
    spec = kernel.spec
    left, stride, dilation = spec.padding[1], spec.strides[1], spec.dilation[1]

    def inside(x: int, kx: int) -> bool:
        return 0 <= x * stride + kx * dilation - left < kernel.image[2]

    taps = range(spec.weight_shape[1])
    table = tuple(tuple(inside(start + j, kx) for kx in taps) for j in range(width))
    return None if all(map(all, table)) else table


def _tile(kernel: TiledKernel, place: TilePlace) -> None:
    """Emit one tile: initialise with the bias, sum, finish."""
    sums = begun(kernel, place)
    spec = kernel.spec
    with T.serial(spec.weight_shape[0]) as ky:
        row = place.y * spec.strides[0] + ky * spec.dilation[0] - spec.padding[0]
        _either(
            _row_inside(kernel, row),
            lambda: add_taps(kernel, place, sums, ky, row),
            lambda: add_taps(kernel, place, sums, ky, None),
        )
    _finish(kernel, place, rearranged(kernel, sums))


def _row_inside(kernel: TiledKernel, row: Any) -> Any:
    """Return the condition that an input row is in the image; None if it always is."""
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


def _finish(kernel: TiledKernel, place: TilePlace, sums: TileSums) -> None:
    """Emit the stores of a tile's sums."""
    spec, lanes = kernel.spec, kernel.unit.lanes
    finish = finish_of(spec, kernel.steps, kernel.constants)
    _, rows, columns = kernel.result
    for j in range(place.tile.columns):
        pixel = (place.n * rows + place.y) * columns + place.x + j
        for v, count in _together(kernel, place):
            channel, total = (place.first + v) * lanes, _joined(kernel, sums, j, (v, count))

            def value(lane: Any, j: int = j, total: Any = total, channel: Any = channel) -> Any:
                return finish(total[lane], channel + lane, place.x + j if spec.dense else place.n)

            used = (count - 1) * lanes + _lanes_of(kernel, place, v + count - 1)
            at = pixel * spec.channels + channel
            _stored(kernel, value, at, (used, count * lanes))


def _together(kernel: TiledKernel, place: TilePlace) -> list[tuple[int, int]]:
    """Yield the first vector and the count of vectors that are stored together: powers of two."""
    found, first, end = [], 0, place.tile.vectors
    whole = end - (_lanes_of(kernel, place, end - 1) < kernel.unit.lanes)
    most = kernel.unit.stored_at_once
    while first < end:
        count = min(most, 1 << max((whole - first).bit_length() - 1, 0))
        found.append((first, count))
        first += count
    return found


def _joined(kernel: TiledKernel, sums: TileSums, column: int, which: tuple[int, int]) -> Any:
    """Return the corrected sums of a column over neighbouring vectors, in one buffer."""
    (first, count), lanes = which, kernel.unit.lanes
    every, totals = tirx.Ramp(0, 1, lanes), sums.totals[column][first : first + count]
    if count == 1 and not sums.values:
        return totals[0]
    made = T.alloc_buffer((count * lanes,), "int32")
    for i, total in enumerate(totals):
        held = total[every]
        if sums.values:
            factor = tirx.Broadcast(i32(correction(kernel.spec)), lanes)
            held = held + sums.values[column][every] * factor
        T.buffer_store(made, held, [tirx.Ramp(i * lanes, 1, lanes)])
    return made


def _stored(
    kernel: TiledKernel, value: Callable[[Any], Any], at: Any, size: tuple[int, int]
) -> None:
    """Emit the stores of result vectors; ``size``: lanes that are channels, and all lanes."""
    used, lanes = size
    if used == lanes:
        with T.vectorized(lanes) as lane:
            T.buffer_store(kernel.out, value(lane), [at + lane])
        return
    made = T.alloc_buffer((lanes,), kernel.spec.finish.dtype)
    with T.vectorized(lanes) as lane:
        T.buffer_store(made, value(lane), [lane])
    for lane in range(used):
        T.buffer_store(kernel.out, made[lane], [at + lane])


def _lanes_of(kernel: TiledKernel, place: TilePlace, v: int) -> int:
    """Return how many lanes of a tile's vector are channels: fewer in the last vector."""
    lanes, rest = kernel.unit.lanes, kernel.spec.channels % kernel.unit.lanes
    last = isinstance(place.first, tirx.IntImm) and int(place.first) + v == vectors(kernel.spec) - 1
    return rest if rest and last else lanes
