"""Gleinig et al., Figure 3: networks that Compact Growth designs for a memory of M_g."""

from collections.abc import Sequence

import numpy as np

from tvm_serenity.papers.record import Budget, Exhibit, PaperCell
from tvm_serenity.sparse.bounds import bounds
from tvm_serenity.sparse.generate import compact_growth
from tvm_serenity.sparse.growth import memory_needed, smallest_memory

SIZES = (100, 300, 500)
FEWER = "some of these networks need one value less (an input waits unread for the output)"


def compute(budget: Budget) -> Sequence[PaperCell]:
    """Return I/Os above the minimum at M_g, and the memory that the networks need."""
    from tvm_serenity.sparse.simulate import simulate

    cells = []
    for memory in SIZES:
        title = f"M_g = {memory}"
        nets = [compact_growth(memory, seed=seed) for seed in range(budget.seeds)]
        grown = [np.arange(net.connections) for net in nets]
        above = max(
            simulate(net, order, memory).total - bounds(net).total
            for net, order in zip(nets, grown, strict=True)
        )
        needed = max(memory_needed(net, order) for net, order in zip(nets, grown, strict=True))
        least = min(smallest_memory(net).memory for net in nets)
        cells += [
            PaperCell(f"{title}: I/Os above the minimum at M_g", 0, above, "I/Os"),
            PaperCell(f"{title}: memory that the grown order needs", memory, needed, "", FEWER),
            PaperCell(f"{title}: least memory found", None, least, "", "by reordering"),
        ]
    return cells


EXHIBIT = Exhibit(
    "figure",
    3,
    "Networks of Compact Growth, 1,000 neurons",
    "The grown order simulated under MIN; the text states that I/Os are minimal at M >= M_g.",
    compute,
)
