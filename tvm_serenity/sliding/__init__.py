"""Incremental inference: a network runs again on a moving window of which only some rows are new.

``retained`` finds the rows of every feature that an earlier window has computed, ``steady`` decides
which rows are computed and which retained; ``step`` orders and places one step; ``choose`` trades
retained memory for recomputation; ``check`` compares steps with full windows, on symbols;
``described`` is the JSON form.
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
