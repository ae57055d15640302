"""The choices of the memory model (``docs/offchip.md``), checked."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import InputError

MAX_BLOCKS = 2**28

T = TypeVar("T", int, npt.NDArray[np.int64])


class Memory(StrEnum):
    """The kind of the on-chip memory."""

    CACHE = "cache"  # write-back; one access at a time; every block takes one slot
    # managed by software: all blocks of a step of an op are resident at once
    SCRATCHPAD = "scratchpad"


class InputPlace(StrEnum):
    """The memory of the graph inputs before the first op."""

    OFF_CHIP = "off-chip"
    ON_CHIP = "on-chip"  # written there just before the first op


class Weights(StrEnum):
    """Whether weights count: every op that reads them streams them past the on-chip memory."""

    NONE = "none"
    OFF_CHIP = "off-chip"
    FLASH = "flash"


@dataclass(frozen=True)
class Model:
    """The memory system; ``block_bytes`` None means unsplit tensors.

    ``alignment_bytes``: unsplit tensors and workspace occupy a multiple of this. Raises
    :class:`InputError` if a block or the alignment is not positive, or if they do not apply.
    """

    block_bytes: int | None = 256
    memory: Memory = Memory.CACHE
    inputs: InputPlace = InputPlace.OFF_CHIP
    weights: Weights = Weights.NONE
    alignment_bytes: int = 1

    def __post_init__(self) -> None:
        if self.block_bytes is not None and self.block_bytes <= 0:
            raise InputError(f"block of {self.block_bytes} bytes: it must be 1 byte or more")
        if self.block_bytes is None and self.memory is Memory.CACHE:
            raise InputError(
                "unsplit tensors do not work in a cache; use the scratchpad, or set a block size"
            )
        if self.alignment_bytes < 1:
            raise InputError(f"alignment of {self.alignment_bytes} bytes: it must be 1 or more")
        if self.alignment_bytes > 1 and self.block_bytes is not None:
            raise InputError("blocks have no alignment; leave it out, or move unsplit tensors")

    def aligned(self, size_bytes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the bytes that tensors or workspaces of these sizes occupy."""
        return -(-size_bytes // self.alignment_bytes) * self.alignment_bytes

    def blocks(self, size_bytes: T) -> T:
        """Return the number of blocks of a tensor of ``size_bytes``, elementwise for an array."""
        return -(-size_bytes // self.block_bytes) if self.block_bytes else 1 * (size_bytes > 0)
