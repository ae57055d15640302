"""Gleinig et al., Figure 7: execution time of random networks beside layer-wise MKL."""

from collections.abc import Sequence

from tvm_serenity.papers.gleinig_times import speed_ups
from tvm_serenity.papers.record import Budget, Exhibit, PaperCell
from tvm_serenity.sparse.generate import baseline_mlp

STATED = {0.001: 45.0, 0.01: None, 0.1: None}
"""Speed-ups over layer-wise MKL that the text states, by density."""


def compute(_budget: Budget) -> Sequence[PaperCell]:
    """Return our speed-up over layer-wise MKL, by density."""
    nets = {density: baseline_mlp(density=density) for density in STATED}
    return speed_ups(nets, STATED)


EXHIBIT = Exhibit(
    "figure",
    7,
    "Execution time of random networks, batch of 128",
    "Four layers of 500 neurons, float32, one thread: MKL's sparse products layer by layer with "
    "bias and ReLU, over our execution.",
    compute,
)
