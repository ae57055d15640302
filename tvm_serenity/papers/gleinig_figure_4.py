"""Gleinig et al., Figure 4: annealing over its iterations, by eviction policy."""

from collections.abc import Sequence

from tvm_serenity.papers.record import Budget, Exhibit, PaperCell
from tvm_serenity.sparse.generate import baseline_mlp
from tvm_serenity.sparse.network import FFNN
from tvm_serenity.sparse.orders import Annealing, OrderOptions, anneal, two_optimal
from tvm_serenity.sparse.simulate import Policy, simulate

MEMORY = 100
EARLY, LATE = 10_000, 100_000
LONGER = 15.0
"""An annealing may take this many times the seconds of an order search."""


def compute(budget: Budget) -> Sequence[PaperCell]:
    """Return the share of the reduction in the first iterations, and the I/Os of LRU and RR."""
    net = baseline_mlp()
    start = simulate(net, two_optimal(net), MEMORY, Policy.MIN).total
    early = _annealed(net, Policy.MIN, EARLY, budget)
    late = _annealed(net, Policy.MIN, LATE, budget)
    share = 100 * (start - early) / (start - late)
    lru, rr = (_annealed(net, policy, EARLY, budget) for policy in (Policy.LRU, Policy.RR))
    note = f"of the reduction after {LATE:,} iterations, or at the time limit"
    return [
        PaperCell(
            f"MIN: reduction in the first {EARLY:,} iterations",
            "more than 50",
            round(share, 1),
            "%",
            note,
        ),
        PaperCell("LRU over RR, I/Os after annealing", "similar", round(lru / rr, 3), "x"),
    ]


def _annealed(net: FFNN, policy: Policy, iterations: int, budget: Budget) -> int:
    seconds = LONGER * budget.seconds
    options = OrderOptions(MEMORY, policy, 0, seconds, Annealing(iterations))
    return anneal(net, options).total


EXHIBIT = Exhibit(
    "figure",
    4,
    "Annealing over its iterations, by eviction policy",
    "Four layers of 500 neurons at 10 %, M = 100; the paper has 10^6 iterations.",
    compute,
)
