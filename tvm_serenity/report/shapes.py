"""What the report's charts are drawn from: a graph, its orders, its arena, as plain JSON."""

from collections.abc import Sequence
from typing import Any

from tvm_serenity.graph import Graph
from tvm_serenity.memory import LiveRange, profile
from tvm_serenity.plan import Plan
from tvm_serenity.report.layout import layered


def graph_json(graph: Graph) -> dict[str, Any]:
    """Return the operators with what they read and write, and where they are drawn."""
    drawn = layered(graph.predecessors)

    def sized(tensors: Sequence[int]) -> list[list[Any]]:
        shown = [t for t in dict.fromkeys(tensors) if graph.in_profile[t]]
        return [[graph.tensors[t].name, graph.tensors[t].size_bytes] for t in shown]

    return {
        "ops": [
            {
                "name": op.name,
                "kind": op.kind,
                "layer": drawn.layer[index],
                "row": round(drawn.row[index], 3),
                "reads": sized(op.inputs),
                "writes": sized(op.outputs),
                "workspace_bytes": op.workspace_bytes,
            }
            for index, op in enumerate(graph.ops)
        ],
        "edges": [[[x, round(y, 3)] for x, y in path] for path in drawn.paths],
        "layers": drawn.layers,
        "rough": drawn.rough,
    }


def order_json(
    graph: Graph, order: Sequence[int], ranges: Sequence[LiveRange], placed: Plan
) -> dict[str, Any]:
    """Return an order's profile and arena: every range with its steps, offset and tenants."""
    shown = profile(graph, order, tuple(ranges))
    step_of = {op: step for step, op in enumerate(order)}
    return {
        "peak_bytes": shown.peak_bytes,
        "peak_step": shown.peak_step,
        "order": list(order),
        "live_bytes": [step.live_bytes for step in shown.steps],
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
            for found, offset in zip(ranges, placed.offsets, strict=True)
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
