"""All kernels of the library, on layers that are drawn for them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.firmware.test_averages import drawn as drawn_mean
from tests.firmware.test_dsp import at_the_ends, dense, joined, planes, short_rows
from tests.firmware.test_library import Drawn, computed, rows_under
from tests.firmware.test_vectors import larger, of_few_inputs, of_nine, summed
from tvm_serenity.firmware.isa import Extensions
from tvm_serenity.firmware.kernels.candidates import Layer, unpriced
from tvm_serenity.firmware.kernels.parts.layer import PlainLayer
from tvm_serenity.firmware.kernels.prices import Row
from tvm_serenity.firmware.kernels.record import LibraryCall, NotCovered
from tvm_serenity.firmware.select import library
from tvm_serenity.kernels.records import BatchMatmul, MaxPool, RowSoftmax
from tvm_serenity.operators import operator
from tvm_serenity.operators.scene import Stored
from tvm_serenity.operators.softmax import Softmax
from tvm_serenity.quantize import tables
from tvm_serenity.quantize.fixed import multiplier, scaled
from tvm_serenity.quantize.params import Affine

CORES = {
    "cortex-m0plus": Extensions(thumb=1, name="cortex-m0plus"),
    "cortex-m3": Extensions(thumb=2, name="cortex-m3"),
    "cortex-m4": Extensions(dsp=True, name="cortex-m4"),
    "cortex-m55": Extensions(vectors=True, name="cortex-m55"),
    "rv32imc": Extensions(name="rv32imc"),
}


def one_window(seed: int) -> Drawn:
    """A dense layer of many inputs with one multiplier, whose results have all values."""
    small = dense(seed)
    rng, spec = np.random.default_rng(seed), small.spec
    limits, inputs, units = np.iinfo(spec.dtype), 32 * (1 + seed % 3), 4 * (1 + seed % 5)
    real = np.broadcast_to(rng.uniform(0.2, 1, 1) / (inputs * 40), units)
    zero = int(limits.min) if seed % 2 else int(rng.integers(limits.min, limits.max))
    ends = (int(limits.min), int(limits.max))
    finish = replace(
        spec.requantise, multiplier=multiplier(real), zero_point=zero, low=ends[0], high=ends[1]
    )
    shape = (1, 1, inputs, units)
    pieces = ((1, 1, 1, inputs),)
    spec = replace(spec, pieces=pieces, weight_shape=shape, requantise=finish)
    weights = rng.integers(-127, 127, shape, endpoint=True).astype(np.int8)
    bias = rng.integers(-30_000, 30_000, units).astype(np.int32)
    given = (rng.integers(*ends, pieces[0], endpoint=True).astype(spec.dtype),)
    return Drawn(spec, weights, bias, given, computed(spec, weights, bias, given))


def pruned(seed: int) -> Drawn:
    """A dense layer or 1x1 convolution of few weights that are not 0; an output has none."""
    rng = np.random.default_rng(seed)
    layer = dense(seed)
    spec = layer.spec
    inputs, outputs = 4 * int(rng.integers(1, 40)), spec.channels
    pieces = ((1, int(rng.integers(1, 4)), int(rng.integers(1, 6)), inputs),)
    finish = spec.requantise
    real = np.broadcast_to(rng.uniform(0.2, 1, 1) / (inputs * 20), outputs)
    finish = replace(finish, multiplier=multiplier(real))
    shape = (1, 1, inputs, outputs)
    spec = replace(spec, pieces=pieces, weight_shape=shape, requantise=finish)
    ends = (-8, 7) if seed % 3 == 0 else (-127, 127)
    weights = rng.integers(*ends, shape, endpoint=True).astype(np.int8)
    weights[rng.random(shape) < rng.choice([0.6, 0.9, 0.97])] = 0
    weights[..., 0] = 0
    limits = np.iinfo(spec.dtype)
    given = (rng.integers(limits.min, limits.max, pieces[0], endpoint=True).astype(spec.dtype),)
    return Drawn(spec, weights, layer.bias, given, computed(spec, weights, layer.bias, given))


DRAWS = (
    pruned,
    at_the_ends,
    planes,
    short_rows,
    joined,
    dense,
    one_window,
    larger,
    of_nine,
    of_few_inputs,
)


@dataclass(frozen=True)
class DrawnKernel:
    """A kernel of a layer, what it reads (tensors, or rows of them) and what it must make."""

    layer: Layer
    made: LibraryCall
    given: tuple[Any, ...]
    operand: tuple[int, ...]
    expected: Any

    @property
    def row(self) -> Row:
        """Which row of a table prices it."""
        form = self.made.form
        return form.kernel.name, form.kernel.case(self.layer, form.options)


def kernels(core: str, seeds: range) -> Iterator[DrawnKernel]:
    """All kernels of drawn layers, whole and of a row."""
    for seed in seeds:
        for draw in DRAWS:
            layer = draw(seed)
            yield from whole(layer, CORES[core])
            yield from _of_row(layer, CORES[core], seed)
        yield from _plain(seed, CORES[core])


def whole(layer: Drawn, core: Extensions) -> Iterator[DrawnKernel]:
    """All kernels of a layer."""
    try:
        seen = library._layer(library._joined_lines(layer.spec), layer.weights, layer.bias)
        seen = replace(seen, vectors=core.vectors)
        for made in unpriced("k", seen, core):
            operands = tuple(range(len(layer.inputs)))
            yield DrawnKernel(seen, made, layer.inputs, operands, layer.expected)
    except NotCovered:
        return


def _of_row(layer: Drawn, core: Extensions, seed: int) -> Iterator[DrawnKernel]:
    try:
        seen = library._layer(layer.spec, layer.weights, layer.bias)
        seen = replace(seen, by_rows=True, vectors=core.vectors)
        y = seed % layer.expected.shape[0]
        rows = tuple(rows_under(layer.spec, y, layer.inputs))
        operands = tuple(np.repeat(range(len(layer.inputs)), layer.spec.weight_shape[0]))
        for made in unpriced("k", seen, core):
            yield DrawnKernel(seen, made, rows, operands, layer.expected[y])
    except NotCovered:
        return


def max_pool(seed: int) -> tuple[MaxPool, Any, Any]:
    """A pool of any window, step and border, its input and its result."""
    rng = np.random.default_rng(seed)
    dtype = ("int8", "uint8")[seed % 2]
    limits = np.iinfo(dtype)
    (kh, kw), (sy, sx) = rng.integers(1, 4, 2).tolist(), rng.integers(1, 4, 2).tolist()
    dy, dx = rng.integers(1, 3, 2).tolist()
    reach = ((kh - 1) * dy + 1, (kw - 1) * dx + 1)
    top, left = int(rng.integers(0, reach[0])), int(rng.integers(0, reach[1]))
    height, width = (int(n) for n in rng.integers(3, 10, 2))
    channels = int(rng.choice([1, 3, 4, 8, 16, 20, 33]))
    lines = max(1, (height + 2 * top - reach[0]) // sy + 1)
    pixels = max(1, (width + 2 * left - reach[1]) // sx + 1)
    x = rng.integers(limits.min, limits.max, (height, width, channels), endpoint=True)
    padded = np.pad(x, ((top, 64), (left, 64), (0, 0)), constant_values=limits.min)
    made = np.zeros((lines, pixels, channels), dtype)
    for row, column in np.ndindex(lines, pixels):
        under = padded[row * sy :, column * sx :][: kh * dy : dy, : kw * dx : dx]
        made[row, column] = under.max(axis=(0, 1))
    shapes = (1, height, width, channels), (1, lines, pixels, channels)
    spec = MaxPool(*shapes, dtype, (kh, kw), (sy, sx), (dy, dx), (top, left))
    return spec, x.astype(dtype)[None], made


ORDERS: tuple[tuple[int, ...], ...] = ((), (0, 2, 1, 3), (0, 1, 3, 2))
"""Orders of the axes of matrices: heads first, tokens first, transposed."""


def matmul(seed: int) -> tuple[BatchMatmul, tuple[Any, Any], Any]:
    """A product of matrices of any size, stored in any order, its operands and its result."""
    rng = np.random.default_rng(seed)
    heads, rows, inner, columns = (int(rng.integers(1, most)) for most in (4, 6, 40, 40))
    flip = bool(seed & 1), bool(seed & 2)
    shapes = (1, heads, rows, inner), (1, 1 if seed % 5 == 0 else heads, inner, columns)
    logical = [rng.integers(-128, 127, shape, endpoint=True) for shape in shapes]
    zeros = [int(zero) for zero in rng.integers(-128, 127, 3, endpoint=True)]
    scales = (0.1, 0.2, float(rng.uniform(0.2, 2) * 0.02 * inner**0.5 * 74))
    a, b, out = (Affine((s,), (z,), "int8") for s, z in zip(scales, zeros, strict=True))
    axes = [ORDERS[int(rng.integers(3))], ORDERS[int(rng.integers(3))], ORDERS[seed // 4 % 2]]
    held = [np.swapaxes(m, 2, 3) if f else m for m, f in zip(logical, flip, strict=True)]
    given = held[0].shape, held[1].shape
    how = "single" if seed % 7 == 3 else "tflite"
    spec = BatchMatmul(given, flip, (a, b), out, how, (axes[0], axes[1], axes[2]))
    total = np.matmul(*(m - zero for m, zero in zip(logical, zeros, strict=False)))
    m = spec.multiplier
    made = np.clip(scaled(total, m.value[0], m.shift[0], how) + zeros[2], -128, 127)
    stored = [
        np.ascontiguousarray(np.transpose(v, order or None) if order else v).astype(np.int8)
        for v, order in zip([*held, made], axes, strict=True)
    ]
    return spec, (stored[0], stored[1]), stored[2]


def products(seed: int) -> Iterator[tuple[PlainLayer, tuple[Any, ...], Any]]:
    """A product, whole, and a row of it if it reads a row of the first matrix."""
    spec, (a, b), made = matmul(seed)
    yield PlainLayer(spec, spec.shape), (a, b), made
    first, second, result = ((order or (0, 1, 2, 3))[1] for order in spec.axes)
    by_heads, y = result == 1, seed % made.shape[1]
    if first != (1 if by_heads else 2 + spec.adjoint[0]):
        return
    if not by_heads or spec.shapes[1][1] == 1:
        yield PlainLayer(spec, spec.shape, (0,), True), (a[0, y], b), made[0, y]
    elif second == 1:
        yield PlainLayer(spec, spec.shape, (0, 1), True), (a[0, y], b[0, y]), made[0, y]


def softmax(seed: int) -> tuple[RowSoftmax, Any, Any, Any]:
    """A softmax of any size, its input, its table of exponentials and its result."""
    rng = np.random.default_rng(seed)
    dtype = ("int8", "uint8")[seed % 2]
    limits = np.iinfo(dtype)
    shape = (1, *(int(rng.integers(1, most)) for most in (4, 4, 70)))
    if seed % 6 == 0:
        shape = (1, 1, 1, 2500)  # shares are below half a step
    x = rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)
    x[0, 0, 0, :] = x[0, 0, 0, 0] if seed % 3 == 0 else x[0, 0, 0, :]
    scale = float(rng.choice([0.004, 0.05, 0.3]))
    least = int(limits.min)
    source = Stored(shape, Affine((scale,), (0,), dtype))
    result = Stored(shape, Affine((1 / 256,), (least,), dtype))
    op = Softmax(source, result, 1.0, (least, int(limits.max)), "tflite")
    meaning = operator("SOFTMAX").integers
    assert meaning is not None
    assert meaning.reference is not None
    shares = meaning.reference(op, x)
    table = tables.without_tail(tables.softmax(scale, 1.0).exponentials)
    return RowSoftmax(shape, dtype, dtype), x, table, shares


def softmaxes(seed: int) -> Iterator[tuple[PlainLayer, tuple[Any, ...], Any]]:
    """A softmax, whole and by rows."""
    spec, x, table, shares = softmax(seed)
    whole = PlainLayer(spec, spec.shape, constants=(table,))
    yield whole, (x,), shares
    yield replace(whole, slots=(0,), by_rows=True), (x[0, 0],), shares[0, 0]


def _plain(seed: int, core: Extensions) -> Iterator[DrawnKernel]:
    spec, operands, expected = summed(seed)
    shape = spec.pair.output_shape
    mean, x, averaged = drawn_mean(seed)
    rows = tuple(a[0, 0] for a in operands)
    layers: list[tuple[PlainLayer, tuple[Any, ...], Any]] = [
        (PlainLayer(spec, shape, (), False, core.vectors), operands, expected),
        (PlainLayer(spec, shape, (0, 1), True, core.vectors), rows, expected[0, 0]),
        (PlainLayer(mean, mean.shape, (), False, core.vectors), (x,), averaged),
    ]
    pool, image, largest = max_pool(seed)
    layers.append((PlainLayer(pool, pool.shape), (image,), largest))
    y = seed % pool.output_shape[1]
    rows_of = [y * pool.strides[0] + k * pool.dilation[0] for k in range(pool.window[0])]
    least = np.iinfo(pool.dtype).min
    padded = np.pad(image[0], ((pool.before[0], 64), (0, 0), (0, 0)), constant_values=least)
    row_layer = PlainLayer(pool, pool.shape, (0,) * pool.window[0], True)
    layers.append((row_layer, tuple(padded[r] for r in rows_of), largest[y]))
    layers.extend(products(seed))
    layers.extend(softmaxes(seed))
    for layer, given, result in layers:
        try:
            for made in unpriced("k", layer, core):
                read = layer.slots if len(layer.slots) == len(given) else range(len(given))
                yield DrawnKernel(layer, made, given, tuple(read), result)
        except NotCovered:
            continue
