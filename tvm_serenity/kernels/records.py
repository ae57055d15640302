"""Records of integer kernels: what each kernel computes; they import no TVM."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tvm_serenity.quantize.fixed import Multiplier, multiplier
from tvm_serenity.quantize.params import Affine

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Index = TypeVar("Index")
"""A number, or an expression of one."""


@dataclass(frozen=True)
class Pair:
    """Two broadcast tensors, their types and zero points."""

    shapes: tuple[Shape, Shape]
    sources: tuple[Affine, Affine]
    result: Affine
    low: int
    high: int
    rounding: str = "tflite"

    @property
    def output_shape(self) -> Shape:
        """The shape of the result."""
        return tuple(int(s) for s in np.broadcast_shapes(*self.shapes))


@dataclass(frozen=True)
class Sum:
    """``a * left + b * right`` times ``out``: TFLite's ADD and SUB.

    Operands are first shifted left by ``shift`` bits. A negative ``right.real`` subtracts.
    """

    pair: Pair
    left: Multiplier
    right: Multiplier
    out: Multiplier
    shift: int


@dataclass(frozen=True)
class Product:
    """``a * b`` times ``out``: TFLite's MUL."""

    pair: Pair
    out: Multiplier


@dataclass(frozen=True)
class Lookup:
    """A function of one 8-bit value: the types of the argument and of the 256 results."""

    shape: Shape
    source: str
    result: str


@dataclass(frozen=True)
class RealSoftmax:
    """A softmax in float32 along the last axis of 8-bit values of type ``source``."""

    shape: Shape
    source: str
    result: Affine
    low: int
    high: int


@dataclass(frozen=True)
class RowSoftmax:
    """A softmax in LiteRT's fixed point along the last axis, by a table of exponentials.

    ``source``, ``result``: the types of both tensors.
    """

    shape: Shape
    source: str
    result: str


@dataclass(frozen=True)
class BatchMatmul:
    """Operands of shapes (..., rows, inner) and (..., inner, columns), transposed if adjoint.

    ``axes``: of both operands and the result, the axes in the order in which the tensor is stored,
    as the argument of a transpose; () as they are.
    """

    shapes: tuple[Shape, Shape]
    adjoint: tuple[bool, bool]
    sources: tuple[Affine, Affine]
    result: Affine
    rounding: str = "tflite"
    axes: tuple[Shape, Shape, Shape] = ((), (), ())

    @property
    def multiplier(self) -> Multiplier:
        """The multiplier of the sums; LiteRT multiplies the scales of the operands in float32."""
        product = np.float32(self.sources[0].scale) * np.float32(self.sources[1].scale)
        return multiplier(float(product) / self.result.scale)

    @property
    def shape(self) -> Shape:
        """The shape of the first operand as it is stored."""
        return tuple(self.shapes[0][axis] for axis in self.axes[0]) or self.shapes[0]

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Rows, inner extent and columns."""
        (left, right), (flip_x, flip_y) = self.shapes, self.adjoint
        rows, inner = (left[-1], left[-2]) if flip_x else (left[-2], left[-1])
        return rows, inner, right[-2] if flip_y else right[-1]

    @property
    def output_shape(self) -> Shape:
        """The shape of the result."""
        rows, _, columns = self.sizes
        batch = np.broadcast_shapes(self.shapes[0][:-2], self.shapes[1][:-2])
        return (*(int(extent) for extent in batch), rows, columns)


@dataclass(frozen=True)
class Requantise:
    """The conversion of int32 sums to stored values: multiply, add zero point, clamp."""

    multiplier: Multiplier
    zero_point: int
    low: int
    high: int
    dtype: str
    rounding: str = "tflite"

    @property
    def per_channel(self) -> bool:
        """Whether each channel has its own multiplier."""
        return len(set(zip(self.multiplier.value, self.multiplier.shift, strict=True))) > 1

    def of_channels(self, part: slice) -> "Requantise":
        """Return the requantisation of selected channels; equal multipliers become one."""
        return replace(self, multiplier=multiplier(self.multiplier.real[part]))

    def arrays(self) -> tuple[Array, ...]:
        """Return the kernel's constants, one entry per channel; none if all are equal."""
        m = self.multiplier
        if not self.per_channel:
            return ()
        if self.rounding == "float":
            return (np.asarray(m.real, np.float32),)
        if self.rounding == "double":
            return (np.asarray(m.real, np.float64),)
        return (np.asarray(m.value, np.int32), np.asarray(m.shift, np.int8))


@dataclass(frozen=True)
class TransposedConvolution:
    """An NHWC transposed convolution; ``before``: results dropped at the top and left."""

    input_shape: tuple[int, int, int, int]
    output_shape: tuple[int, int, int, int]
    dtype: str
    weight_shape: tuple[int, int, int, int]
    weight_dtype: str
    strides: tuple[int, int]
    before: tuple[int, int]
    input_zero: int
    weight_zero: int
    requantise: Requantise


@dataclass(frozen=True)
class AveragePool:
    """A mean over windows, of the elements inside the image."""

    layout: str
    shape: tuple[int, int, int, int]
    output_shape: tuple[int, int, int, int]
    dtype: str
    window: tuple[int, int]
    strides: tuple[int, int]
    padding: tuple[int, int, int, int]
    low: int
    high: int
    zero_point: int
    requantise: Requantise | None = None


@dataclass(frozen=True)
class MaxPool:
    """The maximum of each window of one image, of the elements inside; channels last.

    ``before``: rows and columns of padding above and to the left of the image.
    """

    shape: tuple[int, int, int, int]
    output_shape: tuple[int, int, int, int]
    dtype: str
    window: tuple[int, int]
    strides: tuple[int, int]
    dilation: tuple[int, int]
    before: tuple[int, int]


@dataclass(frozen=True)
class Mean:
    """A sum over ``axes`` times a multiplier, which includes 1 / count for a mean."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    keep: bool
    dtype: str
    zero_point: int
    requantise: Requantise


@dataclass(frozen=True)
class Bilinear:
    """A resize of an image ``[batch, height, width, channels]`` to another ``size``.

    ``coordinates``: "asymmetric", "align_corners" or "half_pixel". ``exact``: each position is
    rounded to 1/1024 of a pixel; LiteRT rounds the step between positions.
    """

    shape: tuple[int, int, int, int]
    size: tuple[int, int]
    dtype: str
    coordinates: str
    exact: bool = False


@dataclass(frozen=True)
class FilterSum:
    """Values ``[batch, units, inputs]`` with weights ``[units, inputs]`` to ``[batch, units]``."""

    batch: int
    units: int
    inputs: int
    dtype: str
    weight_dtype: str
    requantise: Requantise


@dataclass(frozen=True)
class WindowSums:
    """The window sums of a convolution; ``pieces``: input shapes, joined along the channels.

    ``padding``: top, left, bottom, right. ``input_zero`` and ``weight_zero``: the stored zeros.
    """

    layout: str
    pieces: tuple[tuple[int, int, int, int], ...]
    dtype: str
    weight_shape: tuple[int, ...]
    weight_dtype: str
    strides: tuple[int, int]
    padding: tuple[int, int, int, int]
    dilation: tuple[int, int]
    groups: int
    input_zero: int
    weight_zero: int

    @property
    def depthwise(self) -> bool:
        """Whether each output channel reads one input channel."""
        return len(self.weight_shape) == 3

    @property
    def channels(self) -> int:
        """The number of output channels."""
        return self.weight_shape[-1]

    @property
    def channel_axis(self) -> int:
        """The channel axis of stored tensors."""
        return self.layout.index("C")

    def position(self, n: Index, y: Index, x: Index, c: Index) -> tuple[Index, Index, Index, Index]:
        """Return indices in the storage order of the data."""
        return (n, y, x, c) if self.layout == "NHWC" else (n, c, y, x)

    def sizes(self, shape: Sequence[int]) -> tuple[int, int, int, int]:
        """Return batch, height, width and channels of a stored shape."""
        n, a, b, c = shape
        return (n, a, b, c) if self.layout == "NHWC" else (n, b, c, a)

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        """The stored shape of the result."""
        n, height, width, _ = self.sizes(self.pieces[0])
        top, left, bottom, right = self.padding
        kh, kw = self.weight_shape[:2]
        h = (height + top + bottom - self.dilation[0] * (kh - 1) - 1) // self.strides[0] + 1
        w = (width + left + right - self.dilation[1] * (kw - 1) - 1) // self.strides[1] + 1
        n, h, w, c = self.position(n, h, w, self.channels)
        return n, h, w, c


@dataclass(frozen=True)
class Convolution(WindowSums):
    """An integer convolution and the requantisation of its sums."""

    requantise: Requantise

    def of_piece(self, index: int) -> "tuple[Convolution, slice]":
        """Return the depthwise convolution of one piece, and its channels."""
        sizes = [self.sizes(shape)[3] for shape in self.pieces]
        every = self.channels // sum(sizes)
        first = sum(sizes[:index]) * every
        part = slice(first, first + sizes[index] * every)
        made = replace(
            self,
            pieces=(self.pieces[index],),
            weight_shape=(*self.weight_shape[:-1], part.stop - part.start),
            groups=sizes[index],
            requantise=self.requantise.of_channels(part),
        )
        return made, part


@dataclass(frozen=True)
class Rescale:
    """The conversion of sums to floats for images with their own quantisation.

    ``asymmetric``: with a zero point. ``channel_first``: sums are multiplied by the channel's
    scale, then by the image's; otherwise by the product of both. ``limits``: of the results, as
    floats. See ``kernels.dynamic``.
    """

    asymmetric: bool
    channel_first: bool
    biased: bool
    limits: tuple[float, float] | None
    dtype: str = "float32"


@dataclass(frozen=True)
class Packed(WindowSums):
    """A convolution, or a dense layer, with weights packed for a dot product unit.

    ``weight_shape``: the unpacked shape. ``finish``: the relevant part of its requantisation; two
    multipliers stand for per-channel ones. ``dense``: tensors are (rows, channels), each row an
    image.
    """

    finish: Requantise | Rescale
    unit: str
    dense: bool

    @property
    def on_the_fly(self) -> Rescale | None:
        """The conversion of sums to floats if the input is quantised at run time."""
        return self.finish if isinstance(self.finish, Rescale) else None

    @property
    def images(self) -> int:
        """The number of images; each has its own quantisation if that is computed at run time."""
        return self.pieces[0][2 if self.dense else 0]

    def stored_shape(self, image: Shape) -> Shape:
        """Return the stored shape of a tensor, from an image's."""
        return image[2:] if self.dense else image


@dataclass(frozen=True)
class Dense:
    """A dense layer on ``rows`` inputs; weights are ``[inputs, units]``."""

    rows: int
    inputs: int
    units: int
    dtype: str
    weight_dtype: str
    weight_zero: int
    requantise: Requantise

    @property
    def pointwise(self) -> Convolution:
        """The same layer as a 1x1 convolution of one row, with a pixel for each input."""
        return Convolution(
            "NHWC",
            ((1, 1, self.rows, self.inputs),),
            self.dtype,
            (1, 1, self.inputs, self.units),
            self.weight_dtype,
            (1, 1),
            (0, 0, 0, 0),
            (1, 1),
            1,
            0,
            self.weight_zero,
            self.requantise,
        )


@dataclass(frozen=True)
class Gate:
    """The requantisation of a gate's sums, of inputs and of the state, to three integer bits."""

    inputs: Multiplier
    state: Multiplier


@dataclass(frozen=True)
class Lstm:
    """An LSTM layer with int16 cells: TFLite's "8x8_16", or TFLM's int16.

    ``gates``: input, forget, cell, output. ``cell_bits``: integer bits of the cells. ``clip``: the
    bound of cells, 0 for none. The state has the quantisation of the result. ``dtype``: of input,
    state and result.
    """

    batch: int
    steps: int
    inputs: int
    units: int
    time_major: bool
    gates: tuple[Gate, Gate, Gate, Gate]
    cell_bits: int
    clip: int
    hidden: Multiplier
    zero: int
    dtype: str = "int8"

    @property
    def cell_steps(self) -> tuple[int, int]:
        """Factor and right shift that rescale cells to steps of 1 / (3 * 4096)."""
        right = 3 - self.cell_bits
        return (3, right) if right > 0 else (3 << -right, 0)

    @property
    def source_shape(self) -> Shape:
        """The shape of the input."""
        return (*self._times, self.inputs)

    @property
    def output_shape(self) -> Shape:
        """The shape of the result."""
        return (*self._times, self.units)

    @property
    def _times(self) -> Shape:
        return (self.steps, self.batch) if self.time_major else (self.batch, self.steps)


@dataclass(frozen=True)
class UpdateSlice:
    """A tensor of ``shape`` whose part of shape ``part`` is replaced, at a computed index.

    ``index``: the type of the index, whose elements are clamped so that the part fits.
    """

    shape: Shape
    part: Shape
    dtype: str
    index: str


Described = (
    AveragePool
    | BatchMatmul
    | Convolution
    | Dense
    | FilterSum
    | Lookup
    | Mean
    | Packed
    | Product
    | RowSoftmax
    | Sum
    | UpdateSlice
)
"""The records that a kernel keeps as its ``spec``."""


@dataclass(frozen=True)
class Subtraction:
    """Levels of ``channels`` minus an estimate of noise that is smoothed over time.

    Coefficients of even and odd channels are fractions with ``bits`` bits; levels are shifted left
    by ``scale`` bits.
    """

    channels: int
    smoothing: tuple[int, int]
    rest: tuple[int, int]
    least: int
    scale: int
    bits: int
    clamps: bool
