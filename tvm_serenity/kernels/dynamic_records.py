"""Records of kernels that quantise activations at run time; they import no TVM.

LiteRT calls such operators "hybrid": float inputs, 8-bit weights. Each batch of the input has its
own quantisation, sums are integers, results floats.
"""

from dataclasses import dataclass

import numpy as np

from tvm_serenity.kernels.records import Rescale, Shape, WindowSums

Limits = tuple[float, float] | None
"""The limits of a fused activation, as floats."""


def steps_columns(asymmetric: bool) -> int:
    """Return how many numbers quantise a batch; a zero point of 0 is omitted."""
    return 3 if asymmetric else 2


@dataclass(frozen=True)
class BatchSteps:
    """The int8 quantisation of each of ``shape[0]`` batches: symmetric, or with a zero point.

    The parameters are an array (batches, :func:`steps_columns`): scale, inverse scale, zero point.
    """

    shape: Shape
    asymmetric: bool

    @property
    def ends_shape(self) -> Shape:
        """The shape of the array of value ranges."""
        return (self.shape[0], 2 if self.asymmetric else 1)

    @property
    def steps_shape(self) -> Shape:
        """The shape of the array of quantisation parameters."""
        return (self.shape[0], steps_columns(self.asymmetric))


@dataclass(frozen=True)
class DynamicConvolution:
    """An int8 convolution with a quantisation per image; ``scales``: one, or one per channel.

    ``channel_first``: sums are multiplied by the channel's scale, then by the image's; otherwise by
    the product of both.
    """

    taps: WindowSums
    asymmetric: bool
    scales: int
    channel_first: bool
    biased: bool
    limits: Limits

    @property
    def finish(self) -> Rescale:
        """The conversion of sums to floats."""
        return Rescale(self.asymmetric, self.channel_first, self.biased, self.limits)


@dataclass(frozen=True)
class DynamicTransposed:
    """An int8 transposed convolution with a zero point and a quantisation per image.

    ``weight_shape``: height, width, input channels, output channels. ``before``: rows and columns
    dropped at the top and left. ``scales``: one, or one per channel.
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
    """``rows`` of int8, each with its own quantisation, times weights ``[inputs, units]``.

    ``scales``: one, or one per unit.
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
        """The conversion of sums to floats."""
        return Rescale(self.asymmetric, False, self.biased, self.limits)


@dataclass(frozen=True)
class DynamicProduct:
    """int8 matrices (..., rows, inner) with a quantisation per row, times an int8 matrix.

    ``shapes``: of both operands. ``adjoint``: the second is (..., columns, inner). ``scale``: that
    of the second.
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
