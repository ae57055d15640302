"""Windows that overlap: a network run again on rows of which a few are new.

``stays`` finds which rows of every feature are those of a window before, ``steady`` which are made
anew and which are kept; ``step`` orders and places one step with what is kept; ``choose`` trades
what is kept for what is made again; ``check`` compares steps with whole windows, on symbols;
``described`` says it all as JSON.
"""

from tvm_serenity.sliding.stays import moved, steady
from tvm_serenity.sliding.steady import LayerReads, MovedWindow, Steady
from tvm_serenity.sliding.step import SlidingStep, sliding_step

__all__ = ["LayerReads", "MovedWindow", "SlidingStep", "Steady", "moved", "sliding_step", "steady"]
