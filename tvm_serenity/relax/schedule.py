"""Reordering of each dataflow block to the order with the least peak."""

from collections.abc import Callable, Sequence
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.graph import Graph
from tvm_serenity.offchip import traffic_order
from tvm_serenity.relax.extents import upper_bounds
from tvm_serenity.relax.in_force import stated
from tvm_serenity.relax.lower import functions_of
from tvm_serenity.relax.read import BoundGraph, read_region, weights_of
from tvm_serenity.schedule import Options, schedule
from tvm_serenity.search.deadline import within

ARENA = "serenity.arena_bytes"
"""Function attribute: the size of the planned arena in bytes."""
OrderOf = Callable[[Graph], Sequence[int]]
"""Returns the order of a graph's operators."""


def ordering(
    method: str | None = None,
    options: Options | None = None,
    on_chip_bytes: int | None = None,
) -> OrderOf:
    """Return a function that finds orders with the least peak, or the least off-chip traffic.

    ``on_chip_bytes``: the on-chip capacity for traffic. The context supplies arguments that are
    None (``tvm_serenity.relax.in_force``).
    """
    context = stated()
    chosen, bytes_there = method or context.method or "auto", on_chip_bytes
    if method is None and options is None and on_chip_bytes is None:
        bytes_there = context.on_chip_bytes

    def best(graph: Graph) -> Sequence[int]:
        with within(context.time_limit_s if options is None else None):
            if bytes_there is not None:
                return traffic_order(graph, bytes_there).order
            return schedule(graph, chosen, options or Options()).order

    return best


def order_module(mod: tvm.IRModule, order_of: OrderOf) -> Any:
    """Return lowered ``mod`` with each dataflow block in the order that ``order_of`` returns.

    Pure bindings outside of dataflow blocks are moved into one. Raises :class:`UnsupportedError`
    for a function with a planned arena: ordering precedes planning.
    """
    for name, function in functions_of(mod):
        if ARENA in (function.attrs or {}):
            raise UnsupportedError(
                f"{name.name_hint!r} already has a planned arena: run SerenitySchedule "
                "before SerenityPlanMemory"
            )
    mod = relax.transform.ConvertToDataflow(min_size=2)(mod)
    result = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    for name, function in functions_of(mod):
        blocks = []
        for index, block in enumerate(function.body.blocks):
            if isinstance(block, relax.DataflowBlock):
                region = _block_region(mod, function, index)
                block = relax.DataflowBlock(region.arrange(order_of(region.graph)))
            blocks.append(block)
        body = relax.SeqExpr(blocks, function.body.body)
        result[name] = compat.with_body(function, body)
    return result


def _block_region(mod: tvm.IRModule, function: relax.Function, index: int) -> BoundGraph:
    """Return the graph of block ``index`` of ``function``; earlier blocks compute its inputs."""
    blocks = function.body.blocks
    before = [b.var for block in blocks[:index] for b in block.bindings]
    bindings = list(blocks[index].bindings)
    results = [b.var for b in bindings if not isinstance(b.var, relax.DataflowVar)]
    return read_region(
        mod,
        [*function.params, *before],
        bindings,
        results,
        weights=weights_of(function),
        bounds=upper_bounds(function),
    )
