"""SerenitySchedule: run the fused calls in the order of least peak."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import tvm
from tvm import relay

from tvm_serenity.errors import InputError
from tvm_serenity.graph import Graph
from tvm_serenity.memory import live_ranges
from tvm_serenity.plan.pools import first_come
from tvm_serenity.relay import lower
from tvm_serenity.relay.read import Region, read_function
from tvm_serenity.relay.scratch import scratch_of
from tvm_serenity.schedule import Options, Schedule, schedule

EXECUTORS = ("graph", "aot")


@tvm.transform.module_pass(opt_level=0, name="SerenitySchedule")
@dataclass
class SerenitySchedule:
    """Order the fused calls of ``main`` for the least peak memory.

    1. The module is optimised and fused as ``relay.build`` would for ``target`` (default: the
       target in scope, else llvm), with ``params`` as constants: fusion decides what is an
       operator and what is materialised. A module of fused calls is taken as it is.
    2. The calls are read as a graph, ordered by ``method`` under ``options``, and bound by one let
       each, in that order, which ``relay.build`` keeps.
    3. ``executor="graph"``: results lie in the graph executor's own memory and count, and an order
       in which TVM's planner would make larger pools than in the given one is not taken;
       ``executor="aot"``: results are the caller's, what kernels allocate for themselves counts.

    The calls stay the same, so outputs are bit-identical. Run it under the ``PassContext`` that
    ``relay.build`` will run under. Dynamic shapes and control flow are refused with
    :class:`UnsupportedError`; external functions are ordered as they are.
    """

    target: Any = None
    method: str = field(default="auto", kw_only=True)
    options: Options = field(default_factory=Options, kw_only=True)
    executor: str = field(default="graph", kw_only=True)
    params: Mapping[str, Any] | None = field(default=None, kw_only=True)

    def transform_module(self, mod: Any, _context: Any) -> Any:
        """Return the module with its calls in their new order."""
        return schedule_module(
            mod, self.target, self.method, self.options, self.executor, self.params
        )[0]


def schedule_module(
    mod: Any,
    target: Any = None,
    method: str = "auto",
    options: Options | None = None,
    executor: str = "graph",
    params: Mapping[str, Any] | None = None,
) -> tuple[Any, Schedule]:
    """Return ``mod`` in its best order, and what is proved about it; as SerenitySchedule."""
    target = lower.target_of(target)
    mod = lower.fused(mod, target, params)
    region = region_of(mod, target, executor)
    found = schedule(region.graph, method, options)
    if executor == "graph":
        found = _least_pools(region.graph, found)
    mod = lower.with_main(mod, region.arrange(found.order))
    return relay.transform.InferType()(mod), found


def region_of(mod: Any, target: Any, executor: str) -> Region:
    """Return the fused calls of ``mod`` with the bytes that count under ``executor``."""
    if executor not in EXECUTORS:
        raise InputError(f"executor={executor!r}: there are {', '.join(EXECUTORS)}")
    aot = executor == "aot"
    return read_function(
        mod["main"], external_outputs=aot, scratch=scratch_of(target) if aot else None
    )


def _least_pools(graph: Graph, found: Schedule) -> Schedule:
    """The order found, or the given one where TVM's planner needs fewer bytes for that."""
    given = schedule(graph, "given")
    if _pool_bytes(graph, given.order) < _pool_bytes(graph, found.order):
        return replace(given, lower_bound_bytes=found.lower_bound_bytes)
    return found


def _pool_bytes(graph: Graph, order: Sequence[int]) -> int:
    return first_come(live_ranges(graph, order)).total_bytes
