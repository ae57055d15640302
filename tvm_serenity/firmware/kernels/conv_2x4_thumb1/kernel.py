"""Convolutions for Thumb-1 (Cortex-M0, M0+, M23): weights are unsigned bytes, 128 is added."""

from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts import tile_2x4

WEIGHT_OFFSET = 128
"""The offset that is added to weights: Thumb-1 loads unsigned bytes only."""

KERNEL = tile_2x4.kernel("conv_2x4_thumb1", frozenset({Isa.THUMB_1}), "unsigned", WEIGHT_OFFSET)
