"""SERENITY, Table 2: scheduling time of SwiftNet by algorithm."""

import time
from collections.abc import Callable, Sequence

from tvm_serenity.graph import Graph
from tvm_serenity.papers.networks import SWIFTNET_CELLS, rewritten
from tvm_serenity.papers.record import Budget, Exhibit, PaperCell
from tvm_serenity.schedule import Options, dp, schedule
from tvm_serenity.schedule.problem import Problem, problem_of

LIMIT_S = 60.0
"""Seconds after which a search is reported as N/A."""
SUM_OF_PARTITIONS = "the paper prints 92, its partitions add up to 90; seconds are of 90 nodes"
MACHINE = "another machine and implementation"
SIGNATURE = "levels hold one entry for each zero-indegree set, which keeps whole SwiftNet small"
Algorithm = Callable[[Problem, float], dp.Variant]


def compute(_budget: Budget) -> Sequence[PaperCell]:
    """Return nodes and scheduling times of the paper's three algorithms, then of our search."""
    cells: list[PaperCell] = []
    for title, rules, suffix, nodes, seconds, note in (
        ("no rewriting", "fold", "?pool=1", "62={21,19,22}", ("N/A", 56.5, 37.9), ""),
        ("rewriting", "paper", "", "92={33,28,29}", ("N/A", 25_920.0, 111.9), SUM_OF_PARTITIONS),
    ):
        parts = [rewritten(f"{spec}{suffix}", rules).net.graph for spec in SWIFTNET_CELLS.values()]
        counts = [len(graph.ops) for graph in parts]
        ours = f"{sum(counts)}={{{','.join(map(str, counts))}}}"
        cells.append(PaperCell(f"{title}, nodes", nodes, ours, "", note))
        whole = [rewritten("zoo:swiftnet", rules).net.graph]
        for name, algorithm, graphs, told in (
            ("1", dp.plain, whole, f"whole SwiftNet, {len(whole[0].ops)} nodes; {SIGNATURE}"),
            ("1+2", dp.divided, parts, MACHINE),
            ("1+2+3", dp.budgeted, parts, MACHINE),
        ):
            paper = seconds[name.count("+")]
            time_s = _seconds(algorithm, graphs)
            cells.append(PaperCell(f"{title}, algorithm {name}", paper, time_s, "s", told))
        exact = sum(schedule(g, "exact", Options(time_limit_s=LIMIT_S)).seconds for g in parts)
        exact_note = "the exact search of this project"
        cells.append(PaperCell(f"{title}, ours", None, round(exact, 4), "s", exact_note))
    return cells


def _seconds(algorithm: Algorithm, graphs: Sequence[Graph]) -> float | str:
    """Return the seconds of an algorithm over all partitions, "N/A" if it exceeds the limit."""
    spent = 0.0
    for graph in graphs:
        variant = algorithm(problem_of(graph), time.perf_counter() + LIMIT_S)
        if not variant.finished:
            return "N/A"
        spent += variant.seconds
    return round(spent, 3)


EXHIBIT = Exhibit(
    "table",
    2,
    "Scheduling time of SwiftNet; 1: dynamic programming, 2: divide and conquer, 3: adaptive soft "
    "budgeting",
    "The paper's algorithms in plain Python on this machine, on the cells of the zoo with concats "
    "folded as the paper counts nodes; 7.2 hours are 25,920 s.",
    compute,
)
