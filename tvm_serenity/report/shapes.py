"""The JSON of the report's charts: a graph, its orders and its arena.

Only the steps around the peak of a long order are included: no browser draws 100,000 operators.
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
"""Maximum number of steps that the page shows; a longer order is cut around its peak."""
MOST_LIVE = 2_000_000
"""Maximum number of live ranges, summed over the shown steps; above it, fewer steps are shown."""


def shown_steps(live: Sequence[int], start: Ints, stop: Ints) -> range:
    """Return the shown steps of an order.

    ``live``: live bytes at each step. ``start``, ``stop``: the bounds of each live range.
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
    """Return the operators ``chosen`` (ascending) with their tensors and positions, as JSON."""
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
    """Return the memory profile and the arena of an order, as JSON.

    Each range that is live in the shown steps has its steps, its offset and its tenants.
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


def _tenants(graph: Graph, shared: LiveRange, step_of: dict[int, int]) -> list[dict[str, Any]]:
    """Return the tensors that share a live range: views, and results of in-place operators."""
    result = []
    for tensor in shared.tensors[1:]:
        producer = graph.producer[tensor]
        view = graph.storage[tensor] != tensor
        result.append(
            {
                "name": graph.tensors[tensor].name,
                "start": step_of[producer] if producer >= 0 else 0,
                "how": "view" if view else "in place",
            }
        )
    return result
