"""SerenitySchedule: run the fused calls in the order of least peak."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import tvm

from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.relay.schedule import schedule_module
from tvm_serenity.schedule import Options


@tvm.transform.module_pass(opt_level=0, name="SerenitySchedule")
@dataclass
class SerenitySchedule(ModulePass):
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

    target: tvm.target.Target | str | None = None
    method: str = field(default="auto", kw_only=True)
    options: Options = field(default_factory=Options, kw_only=True)
    executor: str = field(default="graph", kw_only=True)
    params: Mapping[str, tvm.nd.NDArray] | None = field(default=None, kw_only=True)

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module with its calls in their new order."""
        return schedule_module(
            mod, self.target, self.method, self.options, self.executor, self.params
        )[0]
