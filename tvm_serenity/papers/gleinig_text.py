"""Compute figures of Gleinig et al. with ``sparse.figures`` within a budget."""

from dataclasses import replace

from tvm_serenity.papers.record import Budget
from tvm_serenity.sparse.figures import Effort
from tvm_serenity.sparse.figures.data import Panel

SHORT = "annealing ends at the time limit of an order, not at 10^6 iterations"


def figure_effort(budget: Budget) -> Effort:
    """Return the paper's networks, with the seeds and the seconds of ``budget``."""
    return replace(Effort(), seeds=budget.seeds, seconds=budget.seconds)


def medians(panel: Panel, curve: str) -> list[float]:
    """Return the median of each point of a curve."""
    return [point.median for point in panel.curves[curve]]


def most_reduced(panels: list[Panel], curve: str) -> tuple[float, float]:
    """Return the largest shares of I/Os saved: of all, and of those above the bound."""
    saved, closer = [0.0], [0.0]
    for panel in panels:
        points = (medians(panel, "start"), medians(panel, curve), medians(panel, "bound"))
        for start, ours, bound in zip(*points, strict=True):
            saved.append(1 - ours / start)
            if start > bound:
                closer.append((start - ours) / (start - bound))
    return max(saved), max(closer)
