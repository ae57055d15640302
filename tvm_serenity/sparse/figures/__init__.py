"""The paper's figures 2 to 8, with this project's method beside the paper's."""

from tvm_serenity.sparse.figures.clocks import CLOCKS
from tvm_serenity.sparse.figures.counts import COUNTS
from tvm_serenity.sparse.figures.data import Panel, Plate, Point, draw
from tvm_serenity.sparse.figures.effort import QUICK, Effort

__all__ = ["FIGURES", "QUICK", "Effort", "Panel", "Plate", "Point", "draw"]

FIGURES = {**COUNTS, **CLOCKS}
"""Maps a figure's number to a function that computes it: :class:`Effort` -> :class:`Plate`."""
