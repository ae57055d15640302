"""SERENITY, Figure 10: reduction of peak memory against TensorFlow Lite."""

from collections.abc import Sequence

from tvm_serenity.offchip.figure import geometric_mean
from tvm_serenity.papers.networks import CELLS, RANDOM_WIRING, linear_arena_bytes, rewritten
from tvm_serenity.papers.record import Budget, Exhibit, PaperCell
from tvm_serenity.rewrite import Rewritten

STATED = {"SwiftNet A, order": 551.0 / 250.9, "SwiftNet A, order and rewriting": 551.0 / 225.8}
"""The bars whose values in bytes Figure 12 states."""
BASELINE = "the graph that TensorFlow Lite ran, and its order, are not published"
EXACT = "every tensor at a planned offset instead of the linear allocator's"


def compute(_budget: Budget) -> Sequence[PaperCell]:
    """Return the reduction for each cell, and the geometric means."""
    columns: dict[str, list[float]] = {}
    cells = []
    for name, spec in CELLS.items():
        paper_rules, all_rules = rewritten(spec, "paper"), rewritten(spec, "all")
        given = linear_arena_bytes(paper_rules.source.graph)
        for column, ours in (
            ("order", given / _ordered_bytes(paper_rules)),
            ("order and rewriting", given / _best_bytes(paper_rules)),
            ("order, all rules, planned", given / all_rules.best.peak_bytes),
        ):
            columns.setdefault(column, []).append(ours)
            note = RANDOM_WIRING if name.startswith("RandWire") else BASELINE
            note = EXACT if column.endswith("planned") else note
            stated = STATED.get(f"{name}, {column}")
            paper = None if stated is None else round(stated, 2)
            cells.append(PaperCell(f"{name}, {column}", paper, round(ours, 2), "x", note))
    for column, paper in zip(columns, (1.68, 1.86, None), strict=True):
        mean = round(geometric_mean(columns[column]), 2)
        note = EXACT if paper is None else f"{BASELINE}; {RANDOM_WIRING}"
        cells.append(PaperCell(f"geometric mean, {column}", paper, mean, "x", note))
    return cells


def _ordered_bytes(found: Rewritten) -> int:
    return linear_arena_bytes(found.source.graph, found.ordered.order)


def _best_bytes(found: Rewritten) -> int:
    return linear_arena_bytes(found.net.graph, found.best.order)


EXHIBIT = Exhibit(
    "figure",
    10,
    "Reduction of the peak memory footprint against TensorFlow Lite",
    "The given order with TensorFlow Lite's linear allocator over: the best order with the same "
    "allocator; the best order after the paper's two rules, same allocator; all our rules in a "
    "planned arena. Bars without a number in the text have no value in the column of the paper.",
    compute,
)
