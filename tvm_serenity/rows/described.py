"""The JSON form of a choice of bands."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tvm_serenity.rows.choose import Choice, table_bytes
from tvm_serenity.rows.stream import Streaming


def described(chosen: Choice) -> dict[str, Any]:
    """Return a choice of bands as a JSON object."""
    best = chosen.best
    network = best.banded.network
    rows = {f.name: h for f, h in zip(network.features, best.banded.heights, strict=True)}
    tall = {f.name for f in network.features if f.height > 1}
    return {
        "streamed": best.banded.feeding is not None,
        "met": chosen.met,
        **point(best),
        "start_peak_bytes": best.start_bytes,
        "bands": {name: height for name, height in rows.items() if name in tall},
        "left_unsplit": list(network.unsplit),
        "untried": list(chosen.untried),
        "recompute": None if chosen.recomputed is None else chosen.recomputed.json(),
        "seconds": chosen.seconds,
    }


def recomputed_text(found: Mapping[str, Any]) -> str:
    """Return the text form of the ``recompute`` object of :func:`described`."""
    factor, chains = found["factor"], found["chains"]
    if not chains:
        return f"nothing (limit: {found['limit']:g} times the multiply-accumulates)"
    again = sum(chain["again"] for chain in chains)
    return (
        f"{factor - 1:.1%} of the multiply-accumulates (limit {found['limit'] - 1:.1%}): "
        f"{len(chains)} chains of layers run in tiles of columns; {again} of them recompute "
        "their first convolution"
    )


def point(found: Streaming) -> dict[str, Any]:
    """Return the sizes, the bound and the outcome of a split network as a JSON object."""
    return {
        "rows": rows_text(found),
        "arena_bytes": found.arena_bytes,
        "peak_bytes": found.schedule.peak_bytes,
        "lower_bound_bytes": found.lower_bound_bytes,
        "gap": round(found.gap, 6),
        "outcome": str(found.outcome),
        "ops": len(found.banded.graph.ops),
        "table_bytes": table_bytes(found.banded),
    }


def rows_text(found: Streaming) -> str:
    """Return the rows per band: one number if all features share it, else their range."""
    features = found.banded.network.features
    pairs = zip(features, found.banded.heights, strict=True)
    heights = [h for f, h in pairs if f.height > 1]
    if not heights:
        return "1"
    most, _ = Counter(heights).most_common(1)[0]
    capped = all(
        h == min(max(heights), f.height)
        for f, h in zip([f for f in features if f.height > 1], heights, strict=True)
    )
    if capped:
        return f"{max(heights)}"
    return f"{min(heights)} to {max(heights)}, mostly {most}"
