"""Convolutions for Thumb-2 without extensions (Cortex-M3): inputs and weights byte by byte."""

from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts import tile_2x4

KERNEL = tile_2x4.kernel("conv_2x4_thumb2", frozenset({Isa.THUMB_2}), "bytes", 0)
