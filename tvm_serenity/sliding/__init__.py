"""Incremental inference: a network runs on a moving window and computes the new rows only.

``retained`` finds the rows of each feature that an earlier step has computed. ``steady`` decides
which rows a step computes and which it retains. ``step`` orders and places one step. ``choose``
trades retained memory for recomputation. ``check`` compares steps with full windows, on symbols.
``described`` converts results to JSON.
"""

from tvm_serenity.sliding.retained import moved_window, steady
from tvm_serenity.sliding.steady import LayerReads, MovedWindow, Steady
from tvm_serenity.sliding.step import SlidingStep, sliding_step

__all__ = [
    "LayerReads",
    "MovedWindow",
    "SlidingStep",
    "Steady",
    "moved_window",
    "sliding_step",
    "steady",
]
