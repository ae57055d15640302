"""The network that the searches read, its array and text forms, and explicit changes to it."""

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
