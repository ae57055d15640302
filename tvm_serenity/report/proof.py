"""The proof status of the main numbers of a report."""

from collections.abc import Mapping
from typing import Any

CHECKED = "recomputed by a checker that shares no code with the search"
REWRITTEN = (
    "the best order found for the rewritten network",
    "the order is optimal for the rewritten network",
)


def proof_json(data: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return a row for each number: its name, its path in the data, its status and the reason."""
    best, rewritten = data["schedule"]["schedule"], data["rewrite"]["schedule"]
    rows = [
        ("peak, given order", "schedule.given.peak_bytes", "exact", "the sum of live tensors"),
        ("peak, best order", "schedule.schedule.peak_bytes", best["outcome"], CHECKED),
        (
            "bound for every order",
            "schedule.schedule.lower_bound_bytes",
            "proved",
            f"method {best['method']}, {best['states']:,} states searched",
        ),
        (
            "arena, best order",
            "schedule.schedule.arena_bytes",
            best["arena_outcome"],
            f"{best['arena_proof']}; no two live tensors overlap, checked pair by pair",
        ),
        (
            "peak after rewriting",
            "rewrite.schedule.peak_bytes",
            rewritten["outcome"],
            f"{REWRITTEN[rewritten['outcome'] == 'optimal']}; the choice of rewrites is heuristic",
        ),
    ]
    return [dict(zip(("what", "path", "status", "why"), row, strict=True)) for row in rows]
