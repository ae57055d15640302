"""SERENITY, Figure 12: memory footprint of SwiftNet cell A, with and without the allocator."""

from collections.abc import Sequence

from tvm_serenity.papers.networks import (
    FLOAT_BYTES,
    SWIFTNET_CELLS,
    linear_arena_bytes,
    rewritten,
)
from tvm_serenity.papers.record import Budget, Exhibit, PaperCell

ALLOCATOR = "the paper's graph for TensorFlow Lite is not published"


def compute(_budget: Budget) -> Sequence[PaperCell]:
    """Return the footprints of cell A at one byte an element, in KB of 1,000 bytes."""
    spec = SWIFTNET_CELLS["SwiftNet A"]
    folded, paper_rules = rewritten(f"{spec}?pool=1", "fold"), rewritten(spec, "paper")
    best = rewritten(spec, "all")
    folded_graph, rewritten_graph = folded.net.graph, paper_rules.net.graph
    rows = (
        ("(a) TensorFlow Lite", 551.0, linear_arena_bytes(paper_rules.source.graph), ALLOCATOR),
        ("(a) order", 250.9, linear_arena_bytes(folded_graph, folded.best.order), ALLOCATOR),
        (
            "(a) order and rewriting",
            225.8,
            linear_arena_bytes(rewritten_graph, paper_rules.best.order),
            "this order leaves the linear allocator no gap",
        ),
        ("(b) order", 200.7, folded.best.peak_bytes, ""),
        ("(b) order and rewriting", 188.2, paper_rules.best.peak_bytes, ""),
        ("(b) order, all rules", None, best.best.peak_bytes, "rules beyond the paper's"),
    )
    return [
        PaperCell(f"{name}", paper, round(size / FLOAT_BYTES / 1000, 1), "KB", note)
        for name, paper, size, note in rows
    ]


EXHIBIT = Exhibit(
    "figure",
    12,
    "Memory footprint while SwiftNet cell A runs, (a) with the allocator, (b) without",
    "Peaks of the zoo's cell A, concats folded as the paper counts nodes; (a) in the arena of "
    "TensorFlow Lite's linear allocator, (b) as the sum of live tensors.",
    compute,
)
