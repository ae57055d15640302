"""The graph of a network that the searches read, its array and text forms, and its reductions."""

from tvm_serenity.graph.network import Graph
from tvm_serenity.graph.orders import complete_order, is_order
from tvm_serenity.graph.parts import MAX_BYTES, Op, Role, Tensor

__all__ = ["MAX_BYTES", "Graph", "Op", "Role", "Tensor", "complete_order", "is_order"]
