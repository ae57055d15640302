"""Windows that overlap: a network run again on rows of which a few are new.

``steady`` finds which rows of every feature are those of the window before, which are made anew
and which are kept; ``step`` orders and places one step with what is kept; ``check`` compares steps
with whole windows, on symbols; ``described`` says it all as JSON.
"""

from tvm_serenity.sliding.steady import LayerReads, Steady, steady
from tvm_serenity.sliding.step import SlidingStep, sliding_step

__all__ = ["LayerReads", "SlidingStep", "Steady", "sliding_step", "steady"]
