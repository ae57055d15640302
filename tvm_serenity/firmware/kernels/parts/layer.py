"""The layers that kernels of the library compute, with the properties that kernels test."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tvm_serenity.firmware.c_names import weighted
from tvm_serenity.firmware.kernels.pack import BLOCK, Rounding
from tvm_serenity.firmware.program import Array
from tvm_serenity.kernels.records import Convolution

CONVOLUTION, DEPTHWISE = "convolution", "depthwise convolution"
"""The values of ``computes`` of a :class:`RoundedConvolution`; others have their spec's name."""
MOST_PIECES = 16
MOST_ROWS = 32
"""The maximum number of rows under a window; pointers to two lines of them are on the stack."""
STACK_BYTES = 480
"""The bytes that a kernel for one instruction set may put on its stack; more is workspace."""
LANES = 16
"""The inputs of a vector."""
MOST_COLUMN_BYTES = 320
"""The maximum bytes of columns of a row kernel, on its stack: row kernels have no workspace."""


def in_vectors(runs: Sequence[int]) -> int:
    """Return the number of vectors for runs of inputs; each run begins a vector."""
    return sum(-(-inputs // LANES) for inputs in runs)


@dataclass(frozen=True)
class RoundedConvolution:
    """A convolution with weights minus their zero point, and the rounding of its sums.

    ``by_rows``: the kernel computes one row. ``vectors``: the core has vector instructions.
    ``narrow``: the weights fit into 4 bits and are stored so. ``gathered``: windows are copied into
    columns (im2col) even if they can be read in place. ``together``: the rows that a call for rows
    computes if they are joined, which its counts depend on.
    """

    spec: Convolution
    weights: npt.NDArray[np.int8]
    bias: Array
    rounding: Rounding
    by_rows: bool = False
    vectors: bool = False
    narrow: bool = False
    gathered: bool = False
    together: int = 1

    @property
    def name(self) -> str:
        """The suffix of the names of C functions for its types."""
        return weighted(self.spec.dtype, 4 if self.narrow else 8)

    @property
    def computes(self) -> str:
        """The kind of layer, as in ``LibraryKernel.computes``."""
        return DEPTHWISE if self.depthwise else CONVOLUTION

    @property
    def products(self) -> int:
        """The number of products (multiply-accumulates)."""
        return math.prod(self.spec.output_shape[:3]) * self.weights.size

    @property
    def inputs(self) -> int:
        """The number of inputs in a window."""
        return int(np.prod(self.weights.shape[:-1]))

    @property
    def alone(self) -> bool:
        """Whether the kernel computes a complete tensor from one window."""
        return not self.by_rows and self.spec.output_shape[1:3] == (1, 1)

    @property
    def full(self) -> bool:
        """Whether results have the type of the inputs, and its full range."""
        r, limits = self.spec.requantise, np.iinfo(self.spec.dtype)
        return r.dtype == self.spec.dtype and (r.low, r.high) == (limits.min, limits.max)

    @property
    def depth(self) -> int:
        """The number of inputs in a window, padded to a multiple of the block."""
        return -(-self.inputs // BLOCK) * BLOCK

    @property
    def plain(self) -> bool:
        """Whether each pixel depends on one input pixel only, so that lines may be joined."""
        spec = self.spec
        plain = spec.weight_shape[:2] == (1, 1) and spec.strides == (1, 1)
        return plain and not any(spec.padding)

    @property
    def sources(self) -> int:
        """The number of rows under a window, of all pieces."""
        return len(self.spec.pieces) * self.spec.weight_shape[0]

    @property
    def depthwise(self) -> bool:
        """Whether every output channel reads its own input channel."""
        return self.spec.depthwise and self.spec.pieces[0][3] > 1

    @property
    def pairs(self) -> int:
        """The number of pairs of taps whose two products are summed in 16 bits."""
        if self.spec.dtype != "int8" or int(self.weights.min(initial=0)) == -128:
            return 0
        return self.spec.weight_shape[0] * self.spec.weight_shape[1] // 2

    @property
    def gathers(self) -> bool:
        """Whether windows are copied into columns (im2col)."""
        return self.gathered or self.must_gather

    @property
    def must_gather(self) -> bool:
        """Whether windows cannot be read in place."""
        if self.grouped:
            return self._groups_must_gather
        return any(shape[3] % BLOCK for shape in self.spec.pieces)

    @property
    def grouped(self) -> bool:
        """Whether groups of four outputs are summed with vectors (``conv_mve``)."""
        if not self.vectors or self.narrow or self.depthwise or not self.rounding.small:
            return False
        gathers = self.gathered or self._groups_must_gather
        return not (self.by_rows and gathers and 2 * self.depth > MOST_COLUMN_BYTES)

    @property
    def clamps_at_zero(self) -> bool:
        """Whether results below the zero point are clamped, so that halves below 0 round freely."""
        return self.spec.requantise.zero_point <= self.spec.requantise.low

    @property
    def fits_3x3_mve(self) -> bool:
        """Whether ``depthwise_3x3_mve`` computes it if it is depthwise."""
        if not self.vectors or self.narrow or not self.rounding.twice_small:
            return False
        if self.spec.weight_shape[:2] != (3, 3) or self.spec.channels % 4:
            return False
        return self.full and int(self.weights.min(initial=0)) > -128

    @property
    def stretches(self) -> list[int]:
        """The number of inputs in each row under a window; groups read each row as one run."""
        kh, kw = self.spec.weight_shape[:2]
        return [kw * shape[3] for shape in self.spec.pieces for _ in range(kh)]

    @property
    def _groups_must_gather(self) -> bool:
        """Whether windows of groups must be copied: their runs would be ragged at a border."""
        may_leave = any(self.spec.padding[1::2]) or self.spec.dilation[1] != 1
        ragged = any(shape[3] % LANES for shape in self.spec.pieces)
        return ragged and may_leave and self.spec.weight_shape[1] > 1

    @cached_property
    def outside(self) -> int:
        """The number of zero points that stand for pixels outside of the image; 0 if not needed."""
        spec = self.spec
        if self.depthwise:
            return max(spec.channels, LANES) if self.fits_3x3_mve else spec.channels
        if self.gathers or not any(spec.padding):
            return 0
        return spec.weight_shape[1] * max(shape[3] for shape in spec.pieces)


@dataclass(frozen=True)
class PlainLayer:
    """A layer without weights, such as ``Sum``; ``spec`` is its record.

    ``shape``: the shape of its first operand. ``slots``: if the kernel computes a row, the operand
    number of each row that it reads. ``constants``: tables that it reads.
    """

    spec: Any
    shape: tuple[int, ...]
    slots: tuple[int, ...] = ()
    by_rows: bool = False
    vectors: bool = False
    constants: tuple[Array, ...] = field(default=(), compare=False)

    @property
    def computes(self) -> str:
        """The kind of layer, as in ``LibraryKernel.computes``."""
        return type(self.spec).__name__

    @property
    def products(self) -> int:
        """The number of elements of its first operand."""
        return math.prod(self.shape)


def joined_rows(layer: RoundedConvolution) -> str:
    """Return why the library cannot read a convolution's windows row by row, "" if it can."""
    spec = layer.spec
    if len(spec.pieces) * spec.weight_shape[0] > MOST_ROWS:
        return f"supports only windows of at most {MOST_ROWS} rows"
    if spec.groups != 1 and not spec.depthwise:
        return "does not support grouped convolutions"
    if len(spec.pieces) > MOST_PIECES:
        return f"supports only concatenations of at most {MOST_PIECES} inputs"
    return ""


def read_as(layer: RoundedConvolution, stack_bytes: int) -> list[RoundedConvolution]:
    """Return the layer with windows read in place, and copied (im2col), if both are possible.

    Columns of row kernels lie on the stack, and must fit into ``stack_bytes``.
    """
    held = not layer.by_rows or 2 * layer.depth <= stack_bytes
    if layer.must_gather:
        return [layer] * held
    if layer.sources == 1 or not held:
        return [layer]
    return [layer, replace(layer, gathered=True)]
