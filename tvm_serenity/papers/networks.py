"""The networks of SERENITY's evaluation, as the zoo builds them."""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

from tvm_serenity.graph import Graph
from tvm_serenity.memory import LiveRange, live_ranges
from tvm_serenity.rewrite import Net, RewriteOptions, Rewritten, rewrite

SWIFTNET_CELLS = {
    "SwiftNet A": "zoo:swiftnet-cell-a",
    "SwiftNet B": "zoo:swiftnet-cell-b",
    "SwiftNet C": "zoo:swiftnet-cell-c",
}
CELLS = {
    "DARTS normal": "zoo:darts-normal-cell",
    **SWIFTNET_CELLS,
    "RandWire C10 A": "zoo:randwire?channels=78&size=32&seed=0",
    "RandWire C10 B": "zoo:randwire?channels=156&size=16&seed=1",
    "RandWire C100 A": "zoo:randwire?channels=78&size=32&seed=10",
    "RandWire C100 B": "zoo:randwire?channels=156&size=16&seed=11",
    "RandWire C100 C": "zoo:randwire?channels=312&size=8&seed=12",
}
"""SERENITY's nine cells.

The stages of RandWire are those of ``zoo:randwire-cifar10`` and ``-cifar100``, each with a new
random graph, and with an input of the stage's channels.
"""
RANDOM_WIRING = "the paper's random graphs are not published; RandWire is drawn anew"
FLOAT_BYTES = 4
"""Bytes of a float32 element; the papers count one byte an element."""


def net_of(spec: str) -> Net:
    """Return a network of the zoo operator by operator, including inputs and outputs."""
    from tvm_serenity import zoo
    from tvm_serenity.relax.rewrite_read import prepared, read_net

    net: Net = read_net(prepared(zoo.build(spec)), name=spec, external=False).net
    return net


def graph_of(spec: str) -> Graph:
    """Return the graph of a network's fused kernels."""
    from tvm_serenity import zoo
    from tvm_serenity.relax.read import module_graph

    graph: Graph = module_graph(zoo.build(spec), spec)
    return graph


@lru_cache(maxsize=64)
def rewritten(spec: str, rules: str) -> Rewritten:
    """Return a network of the zoo rewritten by ``rules``, in its best order."""
    return rewrite(net_of(spec), RewriteOptions(rules=rules))


def linear_arena_bytes(graph: Graph, order: Sequence[int] | None = None) -> int:
    """Return the arena of TensorFlow Lite's linear allocator for an order.

    The allocator is that of ``simple_memory_arena.cc`` of 2019: tensors are placed in the order in
    which they become live, each into the smallest gap that holds it, else above all live tensors.
    """
    placed: list[tuple[int, LiveRange]] = []
    arena = 0
    for one in sorted(live_ranges(graph, order), key=lambda r: r.start):
        if not one.size_bytes:
            continue
        offset, best_gap, end = None, 0, 0
        for start, other in sorted(placed, key=lambda p: p[0]):
            if other.stop <= one.start:
                continue
            gap = start - end
            if gap >= one.size_bytes and (offset is None or gap < best_gap):
                offset, best_gap = end, gap
            end = max(end, start + other.size_bytes)
        offset = end if offset is None else offset
        placed.append((offset, one))
        arena = max(arena, offset + one.size_bytes)
    return arena


def multiply_accumulates(module: Any) -> int:
    """Return the multiply-accumulates of a module's convolutions and dense layers (NCHW)."""
    total = 0
    for binding in _bindings(module):
        if binding.value.op.name in ("relax.nn.conv2d", "relax.matmul"):
            spatial = [int(extent) for extent in binding.var.ty.shape][2:]
            total += binding.value.args[1].value.numpy().size * prod(spatial)
    return total


def weight_count(module: Any) -> int:
    """Return the number of elements of a module's constants."""
    from tvm.ir.expr import GenericConst

    arguments = [arg for binding in _bindings(module) for arg in binding.value.args]
    return sum(arg.value.numpy().size for arg in arguments if isinstance(arg, GenericConst))


def _bindings(module: Any) -> list[Any]:
    (block,) = module["main"].body.blocks
    return list(block.bindings)
