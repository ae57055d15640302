"""Computes the memory needs of networks, as objectives for architecture search."""

from tvm_serenity.nas.objective import (
    Objectives,
    graph_of,
    measure,
    measure_batch,
    peak_bytes,
    peak_bytes_batch,
)

__all__ = [
    "Objectives",
    "graph_of",
    "measure",
    "measure_batch",
    "peak_bytes",
    "peak_bytes_batch",
]
