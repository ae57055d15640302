"""What kernels that quantise activations while they run are made from; no TVM is imported here.

LiteRT calls such operators "hybrid": the input is float, the weights are stored as 8-bit integers.
Each batch of the input is stored in steps of its own, the sums are integers, the result is float.
"""

from dataclasses import dataclass

import numpy as np

from tvm_serenity.kernels.records import Rescale, Shape, WindowSums

Limits = tuple[float, float] | None
"""Between which floats a fused activation keeps a result."""


def steps_columns(asymmetric: bool) -> int:
    """Return how many numbers say how a batch is stored: the zero point is left out if it is 0."""
    return 3 if asymmetric else 2


@dataclass(frozen=True)
class BatchSteps:
    """How each of ``shape[0]`` batches is stored as int8: symmetric, or with a zero point.

    The steps are an array (batches, :func:`steps_columns`): scale, what a value is multiplied by,
    zero point.
    """

    shape: Shape
    asymmetric: bool

    @property
    def ends_shape(self) -> Shape:
        """The shape of the array of how far batches reach."""
        return (self.shape[0], 2 if self.asymmetric else 1)

    @property
    def steps_shape(self) -> Shape:
        """The shape of the array of steps."""
        return (self.shape[0], steps_columns(self.asymmetric))


@dataclass(frozen=True)
class DynamicConvolution:
    """A convolution of int8 in the steps of each image; ``scales``: one, or one a channel.

    ``channel_first``: sums are multiplied by the scale of their channel before that of their
    image; else by the product of the two.
    """

    taps: WindowSums
    asymmetric: bool
    scales: int
    channel_first: bool
    biased: bool
    limits: Limits

    @property
    def finish(self) -> Rescale:
        """How sums become floats."""
        return Rescale(self.asymmetric, self.channel_first, self.biased, self.limits)


@dataclass(frozen=True)
class DynamicTransposed:
    """A transposed convolution of int8, stored with a zero point in the steps of each image.

    ``weight_shape``: height, width, input channels, output channels. ``before`` is cut off above
    and to the left. ``scales``: one, or one a channel.
    """

    input_shape: tuple[int, int, int, int]
    output_shape: tuple[int, int, int, int]
    weight_shape: tuple[int, int, int, int]
    strides: tuple[int, int]
    before: tuple[int, int]
    scales: int
    biased: bool
    limits: Limits


@dataclass(frozen=True)
class DynamicDense:
    """``rows`` of int8, each in steps of its own, times weights ``[inputs, units]``.

    ``scales``: one, or one a unit.
    """

    rows: int
    inputs: int
    units: int
    asymmetric: bool
    scales: int
    biased: bool
    limits: Limits

    @property
    def finish(self) -> Rescale:
        """How sums become floats."""
        return Rescale(self.asymmetric, False, self.biased, self.limits)


@dataclass(frozen=True)
class DynamicProduct:
    """Matrices (..., rows, inner) of int8, each row in steps of its own, times int8 ones.

    ``shapes``: of both operands; ``adjoint``: whether the second is (..., columns, inner).
    ``scale`` is that of the second.
    """

    shapes: tuple[Shape, Shape]
    adjoint: bool
    scale: float
    asymmetric: bool

    @property
    def output_shape(self) -> Shape:
        """The shape of the result."""
        left, right = self.shapes
        batch = np.broadcast_shapes(left[:-2], right[:-2])
        columns = right[-2] if self.adjoint else right[-1]
        return (*(int(extent) for extent in batch), left[-2], columns)
