"""Gleinig et al., Figure 8: execution time of a pruned perceptron of BERT."""

from collections.abc import Sequence

from tvm_serenity.papers.gleinig_text import figure_effort
from tvm_serenity.papers.gleinig_times import measured, speed_ups
from tvm_serenity.papers.record import Budget, Exhibit, PaperCell

STATED_MKL_MS = 17.0
"""Milliseconds of MKL at 10 % density; the text of the paper excludes one outlier."""
DENSITIES = (0.01, 0.1)


def compute(budget: Budget) -> Sequence[PaperCell]:
    """Return the times of MKL and of our execution at 10 %, and our speed-up by density."""
    networks = figure_effort(budget)
    nets = {density: networks.pruned(density, 0) for density in DENSITIES}
    ours_us, mkl_us = measured(nets[0.1])
    mkl_ms = None if mkl_us is None else round(mkl_us / 1000, 2)
    machine = "another processor and MKL"
    return [
        PaperCell("10.0%, MKL layer by layer", STATED_MKL_MS, mkl_ms, "ms", machine),
        PaperCell("10.0%, our execution", None, round(ours_us / 1000, 2), "ms"),
        *speed_ups(nets, dict.fromkeys(DENSITIES)),
    ]


EXHIBIT = Exhibit(
    "figure",
    8,
    "Execution time of a pruned perceptron of BERT's shape, batch of 128",
    "Random weights of the shape 1024-4096-1024, float32, one thread.",
    compute,
)
