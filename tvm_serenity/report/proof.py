"""What is known about each of the report's main numbers, and how."""

from collections.abc import Mapping
from typing import Any

CHECKED = "computed again by a checker that shares no code with the search"
REWRITTEN = (
    "the best order that was found for the rewritten network",
    "the order is proved for the rewritten network",
)


def proof_json(data: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return a row a number: what it is, where it stands in the data, status, reason."""
    found, rewritten = data["schedule"]["schedule"], data["rewrite"]["schedule"]
    rows = [
        ("peak, given order", "schedule.given.peak_bytes", "exact", "a sum over live tensors"),
        ("peak, best order", "schedule.schedule.peak_bytes", found["outcome"], CHECKED),
        (
            "bound for every order",
            "schedule.schedule.lower_bound_bytes",
            "proved",
            f"method {found['method']}, {found['states']:,} states searched",
        ),
        (
            "arena, best order",
            "schedule.schedule.arena_bytes",
            found["arena_outcome"],
            f"{found['arena_proof']}; no two live tensors overlap, checked pair by pair",
        ),
        (
            "peak after rewriting",
            "rewrite.schedule.peak_bytes",
            rewritten["outcome"],
            f"{REWRITTEN[rewritten['outcome'] == 'optimal']}; which rewrites to apply is a search",
        ),
    ]
    return [dict(zip(("what", "path", "status", "why"), row, strict=True)) for row in rows]
