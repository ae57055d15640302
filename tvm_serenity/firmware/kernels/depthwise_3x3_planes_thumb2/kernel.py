"""Depthwise convolutions of 3x3 for Thumb-2 without extensions (Cortex-M3): a plane per channel."""

from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts import planes

LINES = planes.Lines("depthwise_3x3_planes_thumb2/kernel.h", "plane_lines")

KERNEL = planes.kernel(
    "depthwise_3x3_planes_thumb2", frozenset({Isa.THUMB_2}), lambda _layer: LINES
)
