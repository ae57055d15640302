"""What is counted: the choices of the memory model (``docs/offchip.md``), checked."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import InputError

MAX_BLOCKS = 2**28

T = TypeVar("T", int, npt.NDArray[np.int64])


class Memory(StrEnum):
    """What the on-chip memory is."""

    CACHE = "cache"  # write-back; accesses one at a time; every block takes one slot
    SCRATCHPAD = "scratchpad"  # managed by software: what a step of an op touches is there at once


class InputPlace(StrEnum):
    """Where the graph inputs are before the first op."""

    OFF_CHIP = "off-chip"
    ON_CHIP = "on-chip"  # written there just before the first op


class Weights(StrEnum):
    """Whether weights count: streamed past the on-chip memory by every op that reads them."""

    NONE = "none"
    OFF_CHIP = "off-chip"
    FLASH = "flash"


@dataclass(frozen=True)
class Model:
    """The memory system; ``block_bytes`` None stands for whole tensors, each in one piece.

    Raises :class:`InputError` on a block that is not positive, or whole tensors in a cache.
    """

    block_bytes: int | None = 256
    memory: Memory = Memory.CACHE
    inputs: InputPlace = InputPlace.OFF_CHIP
    weights: Weights = Weights.NONE

    def __post_init__(self) -> None:
        if self.block_bytes is not None and self.block_bytes <= 0:
            raise InputError(f"block of {self.block_bytes} bytes: a block has 1 byte or more")
        if self.block_bytes is None and self.memory is Memory.CACHE:
            raise InputError("whole tensors are placed by software: use the scratchpad with them")

    def blocks(self, size_bytes: T) -> T:
        """Return the number of blocks of a tensor of ``size_bytes``; or of each of an array."""
        return -(-size_bytes // self.block_bytes) if self.block_bytes else 1 * (size_bytes > 0)
