"""What the report's charts are drawn from: a graph, its orders, its arena, as plain JSON.

Of a long order what is around its peak: no browser draws 100,000 operators.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from tvm_serenity.graph import Graph
from tvm_serenity.graph.arrays import Ints, ints
from tvm_serenity.memory import LiveRange, live_bytes, peak_bytes
from tvm_serenity.plan import Plan
from tvm_serenity.report.layout import layered

MOST_STEPS = 5_000
"""Steps of an order that the page shows; of a longer one, those around its peak."""
MOST_LIVE = 2_000_000
"""Ranges live in these steps, all together; where there are more, fewer steps are shown."""


def shown_steps(live: Sequence[int], start: Ints, stop: Ints) -> range:
    """Return the steps to show of an order with so many live bytes at each.

    ``start`` and ``stop`` are those of its live ranges.
    """
    count = len(live)
    if count <= MOST_STEPS:
        return range(count)
    change = np.zeros(count + 1, dtype=np.int64)
    np.add.at(change, start, 1)
    np.subtract.at(change, np.minimum(stop, count), 1)
    together = np.cumsum(np.cumsum(change))
    peak, width = live.index(max(live)), MOST_STEPS
    while True:
        first = min(max(0, peak - width // 2), count - width)
        before = together[first - 1] if first > 0 else 0
        if width == 1 or together[first + width - 1] - before <= MOST_LIVE:
            return range(first, first + width)
        width //= 2


def graph_json(graph: Graph, chosen: Sequence[int]) -> dict[str, Any]:
    """Return the chosen operators, ascending, with what they read and write, and where to draw."""
    shown = [graph.ops[i] for i in chosen]
    drawn = layered(graph.predecessors_among(chosen))

    def sized(tensors: Sequence[int]) -> list[list[Any]]:
        counted = [t for t in dict.fromkeys(tensors) if graph.counted[t]]
        return [[graph.tensors[t].name, graph.tensors[t].size_bytes] for t in counted]

    return {
        "ops": [
            {
                "op": i,
                "name": op.name,
                "kind": op.kind,
                "layer": layer,
                "row": round(row, 3),
                "reads": sized(op.inputs),
                "writes": sized(op.outputs),
                "workspace_bytes": op.workspace_bytes,
            }
            for i, op, layer, row in zip(chosen, shown, drawn.layer, drawn.row, strict=True)
        ],
        "edges": [[[x, round(y, 3)] for x, y in path] for path in drawn.paths],
        "layers": drawn.layers,
        "rough": drawn.rough,
    }


def order_json(
    graph: Graph, order: Sequence[int], ranges: Sequence[LiveRange], placed: Plan
) -> dict[str, Any]:
    """Return what is shown of an order's profile and arena.

    Each range that is live in the steps shown, with its own steps, offset and tenants.
    """
    live = live_bytes(graph, order)
    peak = max(live, default=0)
    start, stop = (ints(map(attrgetter(name), ranges), len(ranges)) for name in ("start", "stop"))
    shown = shown_steps(live, start, stop)
    step_of = {op: step for step, op in enumerate(order)}
    met = np.ones(len(ranges), dtype=np.bool_)
    if len(shown) < len(live):
        met = (start < shown.stop) & (stop > shown.start)
    drawn = [(ranges[i], placed.offsets[i]) for i in np.flatnonzero(met).tolist()]
    return {
        "steps": len(order),
        "peak_bytes": peak if live else peak_bytes(graph, order),
        "peak_step": live.index(peak) if live else None,
        "first_step": shown.start,
        "order": list(order[shown.start : shown.stop]),
        "live_bytes": live[shown.start : shown.stop],
        "arena_bytes": placed.arena_bytes,
        "ranges": [
            {
                "name": found.name,
                "bytes": found.size_bytes,
                "start": found.start,
                "stop": min(found.stop, len(order)),
                "offset": offset,
                "tenants": _tenants(graph, found, step_of),
            }
            for found, offset in drawn
        ],
    }


def _tenants(graph: Graph, found: LiveRange, step_of: dict[int, int]) -> list[dict[str, Any]]:
    """What else lives in a range: views of its tensor, and what was written over it in place."""
    result = []
    for tensor in found.tensors[1:]:
        maker = graph.producer[tensor]
        view = graph.storage[tensor] != tensor
        result.append(
            {
                "name": graph.tensors[tensor].name,
                "start": step_of[maker] if maker >= 0 else 0,
                "how": "view" if view else "in place",
            }
        )
    return result
