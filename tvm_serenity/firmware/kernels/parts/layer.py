"""Layers as the kernels of the library see them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tvm_serenity.firmware.c_names import weighted
from tvm_serenity.firmware.kernels.pack import BLOCK, Rounding
from tvm_serenity.firmware.program import Array
from tvm_serenity.kernels.records import Convolution

CONVOLUTION, DEPTHWISE = "convolution", "depthwise convolution"
"""What a :class:`RoundedConvolution` computes; other layers compute what their spec is called."""
MOST_PIECES = 16
MOST_ROWS = 32
"""Rows under a window: a kernel has pointers at those of two lines on its stack."""
STACK_BYTES = 480
"""What a kernel for one instruction set may put on its stack; more is workspace."""
LANES = 16
"""Inputs of a vector."""
MOST_COLUMN_BYTES = 320
"""Row kernels have no workspace: windows that must be gathered and are larger stay with TIR's."""


def in_vectors(runs: Sequence[int]) -> int:
    """Return how many vectors runs of inputs fill, each from its beginning on."""
    return sum(-(-inputs // LANES) for inputs in runs)


@dataclass(frozen=True)
class RoundedConvolution:
    """A convolution with its weights less their zero point, and how its sums are rounded.

    ``by_rows``: its kernel makes a row; ``vectors``: the core has vector instructions. ``narrow``:
    weights fit into 4 bits, which the library then reads. ``gathered``: windows are gathered into
    columns, also where they need not be.
    """

    spec: Convolution
    weights: npt.NDArray[np.int8]
    bias: Array
    rounding: Rounding
    by_rows: bool = False
    vectors: bool = False
    narrow: bool = False
    gathered: bool = False

    @property
    def name(self) -> str:
        """How the library's functions for it are named."""
        return weighted(self.spec.dtype, 4 if self.narrow else 8)

    @property
    def computes(self) -> str:
        """What it computes, as records of kernels name it."""
        return DEPTHWISE if self.apart else CONVOLUTION

    @property
    def products(self) -> int:
        """How many products it sums up."""
        return math.prod(self.spec.output_shape[:3]) * self.weights.size

    @property
    def inputs(self) -> int:
        """Inputs in a window."""
        return int(np.prod(self.weights.shape[:-1]))

    @property
    def alone(self) -> bool:
        """Whether a layer of whole tensors has one window."""
        return not self.by_rows and self.spec.output_shape[1:3] == (1, 1)

    @property
    def full(self) -> bool:
        """Whether results have the type of inputs and may have all of its values."""
        r, limits = self.spec.requantise, np.iinfo(self.spec.dtype)
        return r.dtype == self.spec.dtype and (r.low, r.high) == (limits.min, limits.max)

    @property
    def depth(self) -> int:
        """Inputs in a window, in whole blocks."""
        return -(-self.inputs // BLOCK) * BLOCK

    @property
    def plain(self) -> bool:
        """Whether each pixel is made from its own alone, so that lines may be joined."""
        spec = self.spec
        plain = spec.weight_shape[:2] == (1, 1) and spec.strides == (1, 1)
        return plain and not any(spec.padding)

    @property
    def sources(self) -> int:
        """Rows under a window, of all pieces."""
        return len(self.spec.pieces) * self.spec.weight_shape[0]

    @property
    def apart(self) -> bool:
        """Whether it is depthwise: every output reads its own input channel."""
        return self.spec.depthwise and self.spec.pieces[0][3] > 1

    @property
    def pairs(self) -> int:
        """Pairs of taps whose products of inputs and weights can be summed up in 16 bits."""
        if self.spec.dtype != "int8" or int(self.weights.min(initial=0)) == -128:
            return 0
        return self.spec.weight_shape[0] * self.spec.weight_shape[1] // 2

    @property
    def gathers(self) -> bool:
        """Whether windows are gathered into columns."""
        return self.gathered or self.must_gather

    @property
    def must_gather(self) -> bool:
        """Whether windows cannot be read where they lie."""
        if self.grouped:
            return self._groups_must_gather
        return any(shape[3] % BLOCK for shape in self.spec.pieces)

    @property
    def grouped(self) -> bool:
        """Whether groups of four outputs are summed with vectors (``conv_mve``)."""
        if not self.vectors or self.narrow or self.apart or not self.rounding.small:
            return False
        gathers = self.gathered or self._groups_must_gather
        return not (self.by_rows and gathers and 2 * self.depth > MOST_COLUMN_BYTES)

    @property
    def clamps_at_zero(self) -> bool:
        """Whether results below their zero point are clamped: halves below 0 round as they like."""
        return self.spec.requantise.zero_point <= self.spec.requantise.low

    @property
    def nines(self) -> bool:
        """Whether it is depthwise of 3x3 as ``depthwise_3x3_mve`` makes it."""
        if not self.vectors or self.narrow or not self.rounding.twice_small:
            return False
        if self.spec.weight_shape[:2] != (3, 3) or self.spec.channels % 4:
            return False
        return self.full and int(self.weights.min(initial=0)) > -128

    @property
    def stretches(self) -> list[int]:
        """Inputs in each row under a window, which groups read as one run."""
        kh, kw = self.spec.weight_shape[:2]
        return [kw * shape[3] for shape in self.spec.pieces for _ in range(kh)]

    @property
    def _groups_must_gather(self) -> bool:
        """Whether windows of groups are gathered: their runs would be ragged at a border."""
        may_leave = any(self.spec.padding[1::2]) or self.spec.dilation[1] != 1
        ragged = any(shape[3] % LANES for shape in self.spec.pieces)
        return ragged and may_leave and self.spec.weight_shape[1] > 1

    @cached_property
    def outside(self) -> int:
        """Elements that stand for pixels outside of the image, 0 where none are needed."""
        spec = self.spec
        if self.apart:
            return max(spec.channels, LANES) if self.nines else spec.channels
        if self.gathers or not any(spec.padding):
            return 0
        return spec.weight_shape[1] * max(shape[3] for shape in spec.pieces)


@dataclass(frozen=True)
class PlainLayer:
    """A layer without weights: its record, such as ``Sum``, whole or by rows.

    ``shape``: of its first operand. ``slots``: of a kernel of a row, the number of the operand of
    each row that it reads.
    """

    spec: Any
    shape: tuple[int, ...]
    slots: tuple[int, ...] = ()
    by_rows: bool = False
    vectors: bool = False

    @property
    def computes(self) -> str:
        """What it computes, as records of kernels name it."""
        return type(self.spec).__name__

    @property
    def products(self) -> int:
        """Elements of its first operand."""
        return math.prod(self.shape)


def joined_rows(layer: RoundedConvolution) -> str:
    """Return why a convolution's windows are no rows of few tensors, "" where they are."""
    spec = layer.spec
    if len(spec.pieces) * spec.weight_shape[0] > MOST_ROWS:
        return f"has windows of at most {MOST_ROWS} rows"
    if spec.groups != 1 and not spec.depthwise:
        return "has no grouped convolutions"
    if len(spec.pieces) > MOST_PIECES:
        return f"reads at most {MOST_PIECES} pieces"
    return ""


def read_as(layer: RoundedConvolution, stack_bytes: int) -> list[RoundedConvolution]:
    """Return the layer with its windows read where they lie and gathered, as far as it can be.

    Columns of row kernels lie on the stack.
    """
    held = not layer.by_rows or 2 * layer.depth <= stack_bytes
    if layer.must_gather:
        return [layer] * held
    if layer.sources == 1 or not held:
        return [layer]
    return [layer, replace(layer, gathered=True)]
