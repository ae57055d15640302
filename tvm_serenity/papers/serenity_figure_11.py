"""SERENITY, Figure 11: reduction of off-chip traffic against TensorFlow Lite."""

from collections.abc import Sequence

from tvm_serenity.offchip import Sweep, points_of, run_points
from tvm_serenity.offchip.figure import bar_of, geometric_mean
from tvm_serenity.offchip.orders import Versions
from tvm_serenity.offchip.rewritten import rewritten_subject
from tvm_serenity.offchip.storages import Subject
from tvm_serenity.papers.networks import CELLS, RANDOM_WIRING, graph_of, net_of
from tvm_serenity.papers.record import Budget, Exhibit, PaperCell

CAPACITIES = (32 << 10, 64 << 10, 128 << 10, 256 << 10)
ORDERS = ("given", "serenity", "rewrite")
NAMES = {"serenity": "order", "rewrite": "order and rewriting"}
STATED = {256 << 10: 1.76}
"""Means that the text states, by capacity."""
GIVEN = (
    "the text does not say whether its mean includes rewriting; TensorFlow Lite's order is not "
    f"published; {RANDOM_WIRING}"
)


def compute(_budget: Budget) -> Sequence[PaperCell]:
    """Return the geometric mean of the reductions by capacity, over cells that do not fit."""
    networks = {
        name: Versions(Subject(graph_of(spec)), rewritten_subject(net_of(spec)))
        for name, spec in CELLS.items()
    }
    rows = run_points(points_of(networks, Sweep(CAPACITIES, ORDERS)), 1)
    by = {(row["model"], row["capacity_bytes"], row["order"]): row for row in rows}
    cells = []
    for capacity in CAPACITIES:
        for order, name in NAMES.items():
            bars = [bar_of(by[n, capacity, "given"], by[n, capacity, order]) for n in CELLS]
            known = [ratio for ratio, _ in bars if ratio is not None]
            marks = [mark for _, mark in bars]
            counted = f"{marks.count('fits')} fit, {marks.count('eradicated')} eradicated"
            note = f"{counted}; {GIVEN}" if capacity in STATED else counted
            paper, ours = STATED.get(capacity), round(geometric_mean(known), 2)
            quantity = f"{capacity >> 10} KB, {name}, geometric mean"
            cells.append(PaperCell(quantity, paper, ours, "x", note))
    return cells


EXHIBIT = Exhibit(
    "figure",
    11,
    "Reduction of off-chip memory traffic against TensorFlow Lite",
    "Bytes moved under Belady's replacement in blocks of 256 bytes, float32, inputs and outputs "
    "off-chip; the given order over ours. The text of the paper states the mean at 256 KB.",
    compute,
)
