"""Reordering of fused calls to the order with the least peak."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import tvm
from tvm import relay

from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph
from tvm_serenity.memory import live_ranges
from tvm_serenity.plan.pools import first_come
from tvm_serenity.relay import lower
from tvm_serenity.relay.read import BoundGraph, read_function
from tvm_serenity.relay.scratch import scratch_of
from tvm_serenity.schedule import Options, Schedule, schedule

EXECUTORS = ("graph", "aot")


def schedule_module(
    mod: tvm.IRModule,
    target: tvm.target.Target | str | None = None,
    method: str = "auto",
    options: Options | None = None,
    executor: str = "graph",
    params: Mapping[str, Any] | None = None,
) -> tuple[Any, Schedule]:
    """Return ``mod`` in its best order, and the proof status, as SerenitySchedule specifies."""
    target = lower.target_of(target)
    mod = lower.fused(mod, target, params)
    region = region_of(mod, target, executor)
    found = schedule(region.graph, method, options)
    if executor == "graph":
        found = _least_pools(region.graph, found)
    mod = lower.with_main(mod, region.arrange(found.order))
    return relay.transform.InferType()(mod), found


def region_of(mod: tvm.IRModule, target: tvm.target.Target, executor: str) -> BoundGraph:
    """Return the fused calls of ``mod`` with the bytes that count under ``executor``."""
    if executor not in EXECUTORS:
        raise InputError(f"executor={executor!r}: there are {', '.join(EXECUTORS)}")
    aot = executor == "aot"
    return read_function(
        mod["main"], external_outputs=aot, scratch=scratch_of(target) if aot else None
    )


def _least_pools(graph: Graph, found: Schedule) -> Schedule:
    """Return the order that needs fewer bytes in TVM's planner: the schedule's or the given one."""
    given = schedule(graph, "given")
    if _pool_bytes(graph, given.order) < _pool_bytes(graph, found.order):
        return replace(given, lower_bound_bytes=found.lower_bound_bytes)
    return found


def _pool_bytes(graph: Graph, order: Sequence[int]) -> int:
    return first_come(live_ranges(graph, order)).total_bytes
