"""The graph of a network that the searches read, its array and text forms, and its reductions."""

from tvm_serenity.graph.network import (
    MAX_BYTES,
    Graph,
    Op,
    Role,
    Tensor,
    complete_order,
    is_order,
)

__all__ = ["MAX_BYTES", "Graph", "Op", "Role", "Tensor", "complete_order", "is_order"]
