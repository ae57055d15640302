"""Orders of the connections behind one signature."""

from tvm_serenity.sparse.orders.simple import layerwise, two_optimal

__all__ = ["layerwise", "two_optimal"]
