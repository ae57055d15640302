"""Gleinig et al., Figure 2: Connection Reordering over density, width, depth and memory."""

from collections.abc import Sequence

from tvm_serenity.papers.gleinig_text import SHORT, figure_effort, most_reduced
from tvm_serenity.papers.record import Budget, Exhibit, PaperCell
from tvm_serenity.sparse.figures import FIGURES


def compute(budget: Budget) -> Sequence[PaperCell]:
    """Return the largest reductions over all points, by annealing and by our orders."""
    panels = FIGURES[2](figure_effort(budget)).panels
    cells = []
    for name, curve, note in (
        ("Connection Reordering", "paper", SHORT),
        ("our orders", "ours", "the best of several methods, same time limit"),
    ):
        saved, closer = most_reduced(panels, curve)
        cells += [
            PaperCell(f"{name}: I/Os saved, at most", 43.5, round(100 * saved, 1), "%", note),
            PaperCell(f"{name}: closer to the bound", 97.4, round(100 * closer, 1), "%", note),
        ]
    return cells


EXHIBIT = Exhibit(
    "figure",
    2,
    "I/Os of random networks by density, width, depth and size of fast memory",
    "The largest reduction over all points of the figure, under MIN, from the two-optimal order; "
    "the text states the paper's.",
    compute,
)
