"""Liberis and Lane, Figure 1: the example graph, its default and its best order."""

from collections.abc import Sequence

from tvm_serenity.papers.example_steps import DEFAULT, OPTIMAL, peak
from tvm_serenity.papers.networks import FLOAT_BYTES, net_of
from tvm_serenity.papers.record import Budget, Exhibit, PaperCell
from tvm_serenity.schedule import schedule


def compute(_budget: Budget) -> Sequence[PaperCell]:
    """Return the peaks of the paper's two orders, and of our best order."""
    best = schedule(net_of("zoo:liberis-lane").graph)
    proof = f"{best.outcome}: no order needs less"
    return [
        PaperCell("default order 1 to 7, peak", 5_216, peak(DEFAULT), "bytes"),
        PaperCell("order 1, 4, 6, 2, 3, 5, 7, peak", 4_960, peak(OPTIMAL), "bytes"),
        PaperCell("best order, peak", 4_960, best.peak_bytes // FLOAT_BYTES, "bytes", proof),
    ]


EXHIBIT = Exhibit(
    "figure",
    1,
    "An example computation graph",
    "Peaks of zoo:liberis-lane, the seven operators of the figure, at one byte an element.",
    compute,
)
