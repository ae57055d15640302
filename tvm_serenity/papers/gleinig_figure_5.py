"""Gleinig et al., Figure 5: I/Os over the size of fast memory."""

from collections.abc import Sequence
from dataclasses import replace

from tvm_serenity.papers.gleinig_text import figure_effort, medians
from tvm_serenity.papers.record import Budget, Exhibit, PaperCell
from tvm_serenity.sparse.figures import FIGURES

TWO_LAYERS = 1001
"""Number of values that two layers and a connection take; the bound is then met by Lemma 1."""


def compute(budget: Budget) -> Sequence[PaperCell]:
    """Return I/Os above the bound, by size of fast memory and order."""
    effort = figure_effort(budget)
    sizes = (*effort.small_memories, TWO_LAYERS)
    (panel,) = FIGURES[5](replace(effort, small_memories=sizes)).panels
    cells = []
    for name, curve in (
        ("before reordering", "start"),
        ("Connection Reordering", "paper"),
        ("our orders", "ours"),
    ):
        above = [
            100 * (ios / bound - 1)
            for ios, bound in zip(medians(panel, curve), medians(panel, "bound"), strict=True)
        ]
        for size, percent in zip(sizes, above, strict=True):
            paper = 0.0 if size == sizes[-1] else None
            quantity = f"M = {size}, {name}: above the bound"
            cells.append(PaperCell(quantity, paper, round(percent, 1), "%"))
    return cells


EXHIBIT = Exhibit(
    "figure",
    5,
    "I/Os over the size of fast memory",
    "Three layers of 500 neurons at 1 %, under MIN. The text states that the bound is reached once "
    "memory is large enough, with and without reordering.",
    compute,
)
