"""What integer kernels are made from: records of what they compute; no TVM is imported here."""

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
    """Two tensors that are broadcast against each other, and what they are stored as."""

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
    """``a * left + b * right`` times ``out``, TFLite's ADD and SUB.

    The operands are shifted left by ``shift`` bits first. A negative ``right.real`` subtracts.
    """

    pair: Pair
    left: Multiplier
    right: Multiplier
    out: Multiplier
    shift: int


@dataclass(frozen=True)
class Product:
    """``a * b`` times ``out``, TFLite's MUL."""

    pair: Pair
    out: Multiplier


@dataclass(frozen=True)
class Lookup:
    """A function of one 8-bit value: types of the argument and of the 256 results."""

    shape: Shape
    source: str
    result: str


@dataclass(frozen=True)
class RealSoftmax:
    """Softmax of rows of 8-bit values of type ``source``, in float32."""

    rows: int
    columns: int
    source: str
    result: Affine
    low: int
    high: int


@dataclass(frozen=True)
class BatchMatmul:
    """Operands of shape (..., rows, inner) and (..., inner, columns), or transposed if adjoint."""

    shapes: tuple[Shape, Shape]
    adjoint: tuple[bool, bool]
    sources: tuple[Affine, Affine]
    result: Affine
    rounding: str = "tflite"

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
    """From int32 sums to stored values: multiply, add the zero point, clamp to low..high."""

    multiplier: Multiplier
    zero_point: int
    low: int
    high: int
    dtype: str
    rounding: str = "tflite"

    @property
    def per_channel(self) -> bool:
        """Whether every channel has its multiplier."""
        return len(set(zip(self.multiplier.value, self.multiplier.shift, strict=True))) > 1

    def of_channels(self, part: slice) -> "Requantise":
        """Return what finishes some channels, which may have one multiplier in common."""
        return replace(self, multiplier=multiplier(self.multiplier.real[part]))

    def arrays(self) -> tuple[Array, ...]:
        """Return the constants of the kernel, one entry a channel; none if all are equal."""
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
    """One transposed convolution of NHWC; ``before`` is cut off above and to the left."""

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
    """The largest value of each window of one image, of the elements inside; channels last.

    ``before``: rows and columns that the first window begins above and to the left of the image.
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
    """A sum over ``axes`` times one multiplier: a mean where that contains the count."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    keep: bool
    dtype: str
    zero_point: int
    requantise: Requantise


@dataclass(frozen=True)
class Bilinear:
    """An image ``[batch, height, width, channels]`` to another ``size``.

    ``coordinates``: "asymmetric", "align_corners" or "half_pixel". ``exact``: where a result lies
    is rounded to 1/1024 of a pixel, result by result; LiteRT rounds the step from one to the next.
    """

    shape: tuple[int, int, int, int]
    size: tuple[int, int]
    dtype: str
    coordinates: str
    exact: bool = False


@dataclass(frozen=True)
class FilterSum:
    """Values ``[batch, units, inputs]`` with weights ``[units, inputs]`` to ``[batch, units]``.

    ``shared``: the values are ``[batch, 1, inputs]``, the same for all units.
    """

    batch: int
    units: int
    inputs: int
    shared: bool
    dtype: str
    weight_dtype: str
    requantise: Requantise


@dataclass(frozen=True)
class WindowSums:
    """What a convolution sums up: ``pieces`` are the shapes of its inputs, joined along channels.

    ``padding`` is top, left, bottom, right. ``input_zero`` and ``weight_zero`` are what zero is
    stored as.
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
        """Whether every output channel reads one input channel."""
        return len(self.weight_shape) == 3

    @property
    def channels(self) -> int:
        """Output channels."""
        return self.weight_shape[-1]

    @property
    def channel_axis(self) -> int:
        """The axis of the channels in stored tensors."""
        return self.layout.index("C")

    def position(self, n: Index, y: Index, x: Index, c: Index) -> tuple[Index, Index, Index, Index]:
        """Return indices in the order the data is stored."""
        return (n, y, x, c) if self.layout == "NHWC" else (n, c, y, x)

    def sizes(self, shape: Sequence[int]) -> tuple[int, int, int, int]:
        """Return batch, height, width, channels of a stored shape."""
        n, a, b, c = shape
        return (n, a, b, c) if self.layout == "NHWC" else (n, b, c, a)

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        """The shape of the result as it is stored."""
        n, height, width, _ = self.sizes(self.pieces[0])
        top, left, bottom, right = self.padding
        kh, kw = self.weight_shape[:2]
        h = (height + top + bottom - self.dilation[0] * (kh - 1) - 1) // self.strides[0] + 1
        w = (width + left + right - self.dilation[1] * (kw - 1) - 1) // self.strides[1] + 1
        n, h, w, c = self.position(n, h, w, self.channels)
        return n, h, w, c


@dataclass(frozen=True)
class Convolution(WindowSums):
    """One convolution of integers and how its sums become stored values."""

    requantise: Requantise

    def of_piece(self, index: int) -> "tuple[Convolution, slice]":
        """Return a depthwise convolution of one piece alone, and which channels that makes."""
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
    """How sums of values in steps of their image become floats (``kernels.dynamic``).

    ``asymmetric``: the steps have a zero point. ``channel_first``: sums are multiplied by the scale
    of their channel before that of their image; else by the product of the two. ``limits``: between
    which floats results are kept.
    """

    asymmetric: bool
    channel_first: bool
    biased: bool
    limits: tuple[float, float] | None
    dtype: str = "float32"


@dataclass(frozen=True)
class Packed(WindowSums):
    """A convolution, or a dense layer, whose weights are packed for a unit of dot products.

    ``weight_shape`` is the one before. ``finish``: what its requantisation depends on; where every
    channel has its multiplier, two stand for all. ``dense``: tensors are (rows, channels), and each
    row is an image of its own.
    """

    finish: Requantise | Rescale
    unit: str
    dense: bool

    @property
    def on_the_fly(self) -> Rescale | None:
        """How sums become floats, of a layer whose input is stored while the network runs."""
        return self.finish if isinstance(self.finish, Rescale) else None

    @property
    def images(self) -> int:
        """Images, each in steps of its own if it is stored while the network runs."""
        return self.pieces[0][2 if self.dense else 0]

    def stored_shape(self, image: Shape) -> Shape:
        """Return the shape of a tensor as it is stored, of an image's."""
        return image[2:] if self.dense else image


@dataclass(frozen=True)
class Dense:
    """One dense layer of ``rows`` inputs; weights are ``[inputs, units]``."""

    rows: int
    inputs: int
    units: int
    dtype: str
    weight_dtype: str
    weight_zero: int
    requantise: Requantise


@dataclass(frozen=True)
class Gate:
    """How the sums of one gate become values of three integer bits: of inputs, of the state."""

    inputs: Multiplier
    state: Multiplier


@dataclass(frozen=True)
class Lstm:
    """An LSTM layer whose cells are int16: TFLite's "8x8_16", or TFLM's of int16.

    ``gates``: input, forget, cell, output. ``cell_bits``: integer bits of the cells. ``clip``:
    what cells are kept below, 0 for nothing. The state is stored as the result is.
    ``dtype``: of the input, the state and the result.
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
        """Factor and right shift that bring cells to steps of 1 / (3 * 4096)."""
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


Described = AveragePool | Convolution | Dense | FilterSum | Lookup | Mean | Packed | Product | Sum
"""What a kernel keeps of its making (``spec``)."""


@dataclass(frozen=True)
class Subtraction:
    """Levels of ``channels`` less an estimate of noise that is smoothed over time.

    Coefficients are fractions of ``bits`` bits, of even and of odd channels; levels are scaled up
    by ``scale`` bits.
    """

    channels: int
    smoothing: tuple[int, int]
    rest: tuple[int, int]
    least: int
    scale: int
    bits: int
    clamps: bool
