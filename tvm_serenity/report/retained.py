"""Live memory over time of a network by rows: how many bytes of each feature are retained.

A row is retained from the call that computes it to the last call that reads it, and between two
steps of a moving window if a later step reads it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm_serenity.graph.arrays import Ints
from tvm_serenity.memory import live_ranges
from tvm_serenity.rows.split import Banded

MOST_FEATURES, MOST_PARTS = 12, 400
"""Maximum numbers of features and of parts of the time; the other features are summed up."""
OTHERS, WORKSPACE = "others", "workspace"


def retained_json(
    name: str, command: str, banded: Banded, order: Sequence[int], kept: Sequence[int] = ()
) -> dict[str, Any]:
    """Return the live bytes of each feature over time, as JSON; features by size, descending.

    ``command``: the command that splits the network. ``kept``: the bytes of each feature that are
    retained between two steps of a moving window. More than ``MOST_PARTS`` calls are parts of equal
    length, with the most of each.
    """
    names = [*(feature.name for feature in banded.network.features), WORKSPACE]
    live = _live(banded, order)
    order_of_size = sorted(np.flatnonzero(live.any(axis=1)).tolist(), key=lambda f: -live[f].max())
    shown, rest = order_of_size[:MOST_FEATURES], order_of_size[MOST_FEATURES:]
    held = [*kept, *[0] * (len(names) - len(kept))]
    rows = [(names[f], live[f], held[f]) for f in shown]
    if rest:
        rows.append((OTHERS, live[rest].sum(axis=0), sum(held[f] for f in rest)))
    return {
        "name": name,
        "command": command,
        "calls": len(order),
        "peak_bytes": int(live.sum(axis=0).max(initial=0)),
        "kept_bytes": sum(kept),
        "features": [
            {
                "name": said,
                "most_bytes": int(values.max(initial=0)),
                "kept_bytes": between,
                "live_bytes": _condensed(values),
            }
            for said, values, between in rows
        ],
    }


def _live(banded: Banded, order: Sequence[int]) -> Ints:
    """Return the live bytes of each feature, and of workspace, at each call."""
    count = len(banded.network.features)
    change = np.zeros((count + 1, len(order) + 1), dtype=np.int64)
    for found in live_ranges(banded.graph, order):
        feature = (
            count if found.workspace_of is not None else banded.bands[found.tensors[0]].feature
        )
        change[feature, found.start] += found.size_bytes
        change[feature, min(found.stop, len(order))] -= found.size_bytes
    return np.cumsum(change, axis=1)[:, :-1]


def _condensed(values: Ints) -> list[int]:
    each = max(-(-len(values) // MOST_PARTS), 1)
    return [int(values[at : at + each].max()) for at in range(0, len(values), each)]
