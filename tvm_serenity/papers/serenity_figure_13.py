"""SERENITY, Figure 13: scheduling time."""

import statistics
import time
from collections.abc import Sequence

from tvm_serenity.papers.networks import CELLS, rewritten
from tvm_serenity.papers.record import Budget, Exhibit, PaperCell
from tvm_serenity.schedule import Options, dp, schedule
from tvm_serenity.schedule.problem import problem_of

LIMIT_S = 20.0
"""Time limit of one search in seconds."""
STATED = {"no rewriting": 40.6, "rewriting": 48.8}
MACHINE = "another machine and implementation"
CUT = "another machine; {count} of nine searches ended at {limit:.0f} s"


def compute(_budget: Budget) -> Sequence[PaperCell]:
    """Return the mean scheduling time over the nine cells by the paper's algorithm and by ours."""
    graphs = {
        "no rewriting": [rewritten(spec, "paper").source.graph for spec in CELLS.values()],
        "rewriting": [rewritten(spec, "paper").net.graph for spec in CELLS.values()],
    }
    cells = []
    for name, paper in STATED.items():
        runs = [
            dp.budgeted(problem_of(graph), time.perf_counter() + LIMIT_S) for graph in graphs[name]
        ]
        unfinished = sum(not run.finished for run in runs)
        note = CUT.format(count=unfinished, limit=LIMIT_S) if unfinished else MACHINE
        mean = round(statistics.mean(run.seconds for run in runs), 2)
        cells.append(PaperCell(f"{name}, the paper's algorithm", paper, mean, "s", note))
        exact = [schedule(g, "exact", Options(time_limit_s=LIMIT_S)).seconds for g in graphs[name]]
        mean = round(statistics.mean(exact), 4)
        cells.append(
            PaperCell(
                f"{name}, our exact search",
                paper,
                mean,
                "s",
                "proved optimal; another machine and algorithm",
            )
        )
    return cells


EXHIBIT = Exhibit(
    "figure",
    13,
    "Mean scheduling time over the nine cells",
    "The paper's dynamic program (divided, with adaptive soft budgeting) in plain Python, and our "
    "exact search, on this machine.",
    compute,
)
