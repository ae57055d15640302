"""Measures that lower the peak: each is applied, ordered and compared with the best order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm_serenity.explain.claims import Claim, counted, no_time
from tvm_serenity.graph import Graph
from tvm_serenity.graph.reduced import Reduced, unreduced
from tvm_serenity.operators.sharing import alias_copies, fold_concat, in_place
from tvm_serenity.schedule import Options, Schedule, schedule, too_late_for
from tvm_serenity.search.outcome import Outcome

MEASURE_S, LARGE_OPS = 5e-5, 2_000
"""Minimum seconds per operator of a measure; networks below ``LARGE_OPS`` are always measured."""

_Change = Callable[[Reduced], Reduced]

CHANGES: Mapping[str, tuple[str, str, Sequence[_Change]]] = {
    "in-place": ("--in-place", "Elementwise operators in place", (in_place,)),
    "alias-copies": ("--alias-copies", "Copies that are views", (alias_copies,)),
    "fold-concat": ("--fold-concat", "Concats whose consumers read the inputs", (fold_concat,)),
    "all-three": (
        "--alias-copies --fold-concat --in-place",
        "All three together",
        (alias_copies, fold_concat, in_place),
    ),
}
"""Changes of the memory semantics of a graph: option of ``schedule``, text, functions."""


@dataclass(frozen=True)
class Measure:
    """The peak of the best order under one measure, its proof, and the kernel calls ``ops``."""

    name: str
    how: str
    words: str
    peak_bytes: int
    lower_bound_bytes: int
    outcome: Outcome
    ops: int
    graph: Graph | None = field(default=None, repr=False, compare=False)
    """The changed network, if it is kept; ``order``: its best order."""
    order: tuple[int, ...] = field(default=(), repr=False, compare=False)

    def json(self) -> dict[str, Any]:
        """Return the measure as ``--json`` prints it."""
        return {
            "name": self.name,
            "how": self.how,
            "peak_bytes": self.peak_bytes,
            "lower_bound_bytes": self.lower_bound_bytes,
            "outcome": str(self.outcome),
            "calls": self.ops,
        }


def measure(name: str, how: str, words: str, found: Schedule) -> Measure:
    """Return the measure whose best order is ``found``."""
    proof = (found.peak_bytes, found.lower_bound_bytes, found.outcome)
    return Measure(name, how, words, *proof, len(found.order))


def measures_of(graph: Graph, time_limit_s: float | None = None) -> list[Measure | Claim]:
    """Return the measure of each of :data:`CHANGES`; the time limit holds for each.

    A measure without time is replaced by a claim that states this.
    """
    result = list[Measure | Claim]()
    for name, (option, words, changes) in CHANGES.items():
        if too_late_for(len(graph.ops), MEASURE_S, LARGE_OPS):
            result.append(no_time(f"{words} ({option})"))
            continue
        reduced = unreduced(graph)
        for change in changes:
            reduced = change(reduced)
        found = schedule(reduced.graph, "auto", Options(time_limit_s=time_limit_s))
        result.append(measure(name, f"schedule {option}", words, found))
    return result


def measure_claims(best_bytes: int, measures: Sequence[Measure]) -> list[Claim]:
    """Return a claim for each measure, compared with the peak of the best order."""
    claims = []
    for m in measures:
        if m.peak_bytes < best_bytes:
            less = 1 - m.peak_bytes / best_bytes
            text = f"{m.words} ({m.how}): {counted(m.peak_bytes)}, {less:.1%} less."
            text += "" if m.outcome is Outcome.OPTIMAL else " Not proved optimal."
        else:
            text = f"{m.words} ({m.how}): no gain, {counted(m.peak_bytes)}."
        claims.append(Claim("measure", text, m.json()))
    return claims
