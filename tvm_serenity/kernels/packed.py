"""Integer convolutions and dense layers with weights packed for dot products.

``Packed`` is a convolution (a dense layer is one on a row of pixels, 1 x 1) for a unit of
``kernels.dot_units``. Its weights are int8 ``[vectors, kh, kw, steps, lanes * group]``: a step
covers ``group`` input channels (of one piece of the input) for ``lanes`` output channels. Channels
are zero-padded to full steps and vectors, biases and multipliers to full vectors. These bytes are
constants of the module and are counted as such.

If channels do not fill groups, the channels of neighbouring pixels are joined (three channels, a 3
x 3 window: nine consecutive values per row): ``TapRow``.

``packed`` is the kernel as a tensor expression, its specification; ``kernels.dot_tiles`` is the
form that runs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from tvm import te, tirx

from tvm_serenity.kernels.arithmetic import finished, i32
from tvm_serenity.kernels.build import prim_func
from tvm_serenity.kernels.convolution import padded
from tvm_serenity.kernels.dot_units import BY_NAME, Unit
from tvm_serenity.kernels.dynamic import SCALE, ZERO, rescaled
from tvm_serenity.kernels.dynamic_records import DynamicConvolution, DynamicDense, steps_columns
from tvm_serenity.kernels.records import (
    Array,
    Convolution,
    Dense,
    Packed,
    Requantise,
    Rescale,
    WindowSums,
)
from tvm_serenity.quantize.fixed import Multiplier


def unit_of(spec: Packed) -> Unit:
    """Return the unit that computes a packed layer."""
    return BY_NAME[spec.unit]


@dataclass(frozen=True)
class TapRow:
    """One row of the window: ``taps`` taps, each of some channels of all pieces.

    A row of joined pixels is one tap, with the channels of all pixels.
    """

    taps: int
    channels: tuple[int, ...]
    steps: tuple[int, ...]
    pixels: int

    @property
    def count(self) -> int:
        """The number of its steps."""
        return self.taps * sum(self.steps)


def row_of(spec: Packed) -> TapRow:
    """Return how rows of the window are divided into steps."""
    group, taps = unit_of(spec).group, spec.weight_shape[1]
    channels = tuple(spec.sizes(piece)[3] for piece in spec.pieces)
    pixels = 1
    if can_be_joined(spec, group):
        channels, taps, pixels = (taps * channels[0],), 1, taps
    return TapRow(taps, channels, tuple(-(-count // group) for count in channels), pixels)


def can_be_joined(spec: WindowSums, group: int) -> bool:
    """Return whether a window row's pixels are consecutive but do not fill groups."""
    whole = len(spec.pieces) == 1 and spec.sizes(spec.pieces[0])[3] % group == 0
    return (
        len(spec.pieces) == 1 and not whole and spec.weight_shape[1] > 1 and spec.dilation[1] == 1
    )


def vectors(spec: Packed) -> int:
    """Return the number of vectors that hold the output channels."""
    return -(-spec.channels // unit_of(spec).lanes)


def correction(spec: WindowSums) -> int:
    """Return the offset of stored weights; int8 weights need none."""
    return (128 if spec.weight_dtype == "uint8" else 0) - spec.weight_zero


def can_be_packed(spec: Any) -> bool:
    """Return whether a layer sums over 8-bit input channels stored last."""
    if isinstance(spec, DynamicDense):
        return True
    if isinstance(spec, DynamicConvolution):
        return spec.taps.groups == 1 and not spec.taps.depthwise
    if isinstance(spec, Dense):
        return spec.dtype in ("int8", "uint8") and spec.weight_dtype in ("int8", "uint8")
    return (
        isinstance(spec, Convolution)
        and spec.layout == "NHWC"
        and spec.groups == 1
        and not spec.depthwise
        and spec.dtype in ("int8", "uint8")
        and spec.weight_dtype in ("int8", "uint8")
    )


Layer = Convolution | Dense | DynamicConvolution | DynamicDense
"""The records of layers that can be packed."""


def packed_spec(spec: Layer, unit: Unit) -> Packed:
    """Return the record of a layer packed for ``unit``."""
    if isinstance(spec, DynamicConvolution | DynamicDense):
        finish: Requantise | Rescale = spec.finish
    else:
        finish = _extremes(spec.requantise)
    if isinstance(spec, Convolution | DynamicConvolution):
        taps = spec.taps if isinstance(spec, DynamicConvolution) else spec
        shared = {f.name: getattr(taps, f.name) for f in fields(WindowSums)}
        return Packed(**shared, finish=finish, unit=unit.name, dense=False)
    return Packed(
        layout="NHWC",
        pieces=((1, 1, spec.rows, spec.inputs),),
        dtype="int8" if isinstance(spec, DynamicDense) else spec.dtype,
        weight_shape=(1, 1, spec.inputs, spec.units),
        weight_dtype="int8" if isinstance(spec, DynamicDense) else spec.weight_dtype,
        strides=(1, 1),
        padding=(0, 0, 0, 0),
        dilation=(1, 1),
        groups=1,
        input_zero=0,
        weight_zero=0 if isinstance(spec, DynamicDense) else spec.weight_zero,
        finish=finish,
        unit=unit.name,
        dense=True,
    )


def _extremes(finish: Requantise) -> Requantise:
    """Return the requantisation with only those multipliers that the kernel depends on."""
    m = finish.multiplier
    if not finish.per_channel:
        return finish
    ends = (1 << 30, (1 << 30) + 1)
    return replace(finish, multiplier=Multiplier(ends, (min(m.shift), max(m.shift)), (0.5, 0.5)))


def packed_constants(
    spec: Packed, finish: Requantise, weight: Array, bias: Array
) -> tuple[Array, ...]:
    """Return weights, biases and multipliers in the kernel's layout.

    ``weight``: (kh, kw, input channels, output channels), or (inputs, units) of a dense layer.
    """
    made, less = _packed_weights(spec, weight, bias)
    return (made, *(_filled(spec, a) for a in (less, *finish.arrays())))


def packed_floats(
    spec: Packed, weight: Array, scales: Array, bias: Array | None
) -> tuple[Array, ...]:
    """Return weights, initial sums, scales, biases and weight sums of a Rescale."""
    finish = spec.on_the_fly
    assert finish is not None
    made, less = _packed_weights(spec, weight, np.zeros(spec.channels, np.int32))
    held = [np.broadcast_to(scales, (spec.channels,)), *([] if bias is None else [bias])]
    if finish.asymmetric:
        held.append(weight.reshape(-1, spec.channels).sum(0, dtype=np.int32))
    return (made, *(_filled(spec, a) for a in (less, *held)))


def _packed_weights(spec: Packed, weight: Array, bias: Array) -> tuple[Array, Array]:
    """Return weights in the kernel's layout, and biases minus the unit's offset."""
    unit = unit_of(spec)
    stored = weight.reshape(spec.weight_shape).astype(np.int64)
    if spec.weight_dtype == "uint8":
        stored = stored - 128
    (kh, _, _, channels), row = stored.shape, row_of(spec)
    taps = stored.reshape(kh, row.taps, -1, channels)
    width = vectors(spec) * unit.lanes
    made = np.zeros((kh, row.taps, sum(row.steps) * unit.group, width), np.int8)
    first = at = 0
    for inputs, count in zip(row.channels, row.steps, strict=True):
        made[:, :, at : at + inputs, :channels] = taps[:, :, first : first + inputs]
        first, at = first + inputs, at + count * unit.group
    made = made.reshape(kh, row.taps, -1, unit.group, vectors(spec), unit.lanes)
    made = np.ascontiguousarray(made.transpose(4, 0, 1, 2, 5, 3)).reshape(_weight_shape(spec))
    whole = (stored + correction(spec)).sum(axis=(0, 1, 2))
    less = bias.astype(np.int64) - unit.offset(spec.dtype) * whole
    return made, less.astype(np.uint64).astype(np.uint32).view(np.int32)


def _weight_shape(spec: Packed) -> tuple[int, ...]:
    unit, row = unit_of(spec), row_of(spec)
    return vectors(spec), spec.weight_shape[0], row.taps, sum(row.steps), unit.lanes * unit.group


def _filled(spec: Packed, array: Array) -> Array:
    """Return an array of one element per channel, zero-padded to full vectors."""
    made = np.zeros(vectors(spec) * unit_of(spec).lanes, array.dtype)
    made[: array.size] = array
    return made


def parameters(spec: Packed) -> dict[str, tuple[tuple[int, ...], str]]:
    """Return shape and type of each buffer of the kernel, by name, in order."""
    held = {f"x{i}": (spec.stored_shape(piece), spec.dtype) for i, piece in enumerate(spec.pieces)}
    every, finish = (vectors(spec) * unit_of(spec).lanes,), spec.finish
    if isinstance(finish, Rescale):
        held["steps"] = (spec.images, steps_columns(finish.asymmetric)), "float32"
        types = ["float32"] * (1 + finish.biased) + ["int32"] * finish.asymmetric
    else:
        types = [str(a.dtype) for a in finish.arrays()]
    held |= {"w": (_weight_shape(spec), "int8"), "b": (every, "int32")}
    held |= {f"m{i}": (every, dtype) for i, dtype in enumerate(types)}
    return held | {"out": (spec.stored_shape(spec.output_shape), finish.dtype)}


def finish_of(spec: Packed, steps: Any, constants: Sequence[Any]) -> Callable[[Any, Any, Any], Any]:
    """Return ``(sum, channel, image) -> result``; ``steps``: the quantisation array, if any."""
    finish = spec.finish
    if not isinstance(finish, Rescale):
        stored = finished(finish, constants)
        return lambda total, channel, _image: stored(total, channel)
    scales, *others = constants

    def result(total: Any, channel: Any, image: Any) -> Any:
        if finish.asymmetric:
            total = total - zero_of(spec, steps, image) * others[-1][channel]
        bias = [others[0][channel]] if finish.biased else []
        return rescaled(finish, total, (scales[channel], steps[image, SCALE]), bias)

    return result


def zero_of(spec: Packed, steps: Any, image: Any) -> Any:
    """Return the stored zero of an image, in 32 bits."""
    finish = spec.on_the_fly
    if finish is None or not finish.asymmetric:
        return i32(spec.input_zero)
    return steps[image, ZERO].astype("int32")


def packed(spec: Packed) -> Any:
    """Return the kernel ``(pieces..., weight, bias, multipliers..., result)``.

    Quantisation parameters, if there are any, follow the pieces.
    """
    *held, _ = parameters(spec).items()
    tensors = [te.placeholder(shape, dtype, name) for name, (shape, dtype) in held]
    sources, others = tensors[: len(spec.pieces)], tensors[len(spec.pieces) :]
    steps = None if spec.on_the_fly is None else others.pop(0)
    weight, bias, *constants = others
    sums, first = [], 0
    for index, source in enumerate(sources):
        image = _Image(spec, spec.pieces[index], source, steps)
        sums.append(_summed(spec, image, weight, (index, first)))
        first += row_of(spec).steps[index]
    finish = finish_of(spec, steps, constants)

    def result(*at: tirx.Var) -> Any:
        total = bias[at[-1]]
        for part in sums:
            total = part(*at) + total
        return finish(total, at[-1], at[0])

    out = te.compute(spec.stored_shape(spec.output_shape), result, name="out")
    return prim_func([*tensors, out], spec)


@dataclass(frozen=True)
class _Image:
    """A piece of the input as an image, whatever its storage."""

    spec: Packed
    shape: tuple[int, int, int, int]
    source: te.Tensor
    steps: te.Tensor | None

    def zero(self, n: Any) -> Any:
        """Return the stored zero of an image; a dense layer has no padding."""
        return zero_of(self.spec, self.steps, 0 if self.spec.dense else n).astype(self.spec.dtype)

    def __call__(self, n: Any, y: Any, x: Any, c: Any) -> Any:
        return self.source(x, c) if self.spec.dense else self.source(n, y, x, c)


def _summed(spec: Packed, image: _Image, weight: te.Tensor, part: tuple[int, int]) -> Any:
    """Return the int32 sums over ``image``; ``part``: its index and first step."""
    unit, row, (piece, first) = unit_of(spec), row_of(spec), part
    ky, kx = te.reduce_axis((0, spec.weight_shape[0]), "ky"), te.reduce_axis((0, row.taps), "kx")
    step, i = te.reduce_axis((0, row.steps[piece]), "step"), te.reduce_axis((0, unit.group), "i")
    (sy, sx), (dy, dx) = spec.strides, spec.dilation
    inputs, channels = row.channels[piece], spec.sizes(image.shape)[3]
    fetch = padded(spec, image, image.zero)

    def term(*at: tirx.Var) -> Any:
        n, y, x, f = (0, 0, *at) if spec.dense else at
        c = step * unit.group + i
        pixel = x * sx + (c // channels if row.pixels > 1 else kx * dx)
        value = fetch(n, y * sy + ky * dy, pixel, c % channels if row.pixels > 1 else c)
        value = value.astype("int32")
        value = value + i32(unit.offset(spec.dtype))
        if inputs % unit.group:
            value = te.if_then_else(c < inputs, value, i32(0))
        lane = f % unit.lanes * unit.group + i
        factor = weight[f // unit.lanes, ky, kx, step + first, lane].astype("int32")
        return te.sum(value * (factor + i32(correction(spec))), axis=[ky, kx, step, i])

    shape = spec.stored_shape(spec.output_shape)
    return te.compute(shape, term, name=f"sum{first}" if first else "sum")
