"""Gleinig et al., Figure 6: a pruned perceptron of BERT, by policy and density."""

from collections.abc import Sequence

from tvm_serenity.papers.gleinig_text import SHORT, figure_effort, medians
from tvm_serenity.papers.record import Budget, Exhibit, PaperCell
from tvm_serenity.sparse.figures import FIGURES

CURVES = (
    ("before reordering", "start", ""),
    ("Connection Reordering", "paper", SHORT),
    ("our orders", "ours", ""),
)


def compute(budget: Budget) -> Sequence[PaperCell]:
    """Return the ratio of I/Os to the bound, by policy, density and order."""
    cells = []
    for panel in FIGURES[6](figure_effort(budget)).panels:
        bound = medians(panel, "bound")
        densities = [point.x for point in panel.curves["bound"]]
        for name, curve, note in CURVES:
            for density, ios, least in zip(densities, medians(panel, curve), bound, strict=True):
                quantity = f"{panel.title}, {density:.1%}, {name}: I/Os over the bound"
                cells.append(PaperCell(quantity, None, round(ios / least, 3), "x", note))
    return cells


EXHIBIT = Exhibit(
    "figure",
    6,
    "A pruned perceptron of BERT's shape, by eviction policy and density",
    "Random weights of the shape 1024-4096-1024, pruned by magnitude, M = 100. The paper shows "
    "points without numbers.",
    compute,
)
