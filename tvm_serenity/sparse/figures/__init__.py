"""The paper's figures 2 to 8, with this project's method beside the paper's."""

from tvm_serenity.sparse.figures.clocks import CLOCKS
from tvm_serenity.sparse.figures.counts import COUNTS
from tvm_serenity.sparse.figures.data import Panel, PaperFigure, Point, draw
from tvm_serenity.sparse.figures.effort import QUICK, Effort

__all__ = ["FIGURES", "QUICK", "Effort", "Panel", "PaperFigure", "Point", "draw"]

FIGURES = {**COUNTS, **CLOCKS}
"""By number: an :class:`Effort` to a :class:`PaperFigure`."""
