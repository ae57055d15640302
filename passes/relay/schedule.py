"""SerenitySchedule: runs the fused calls of a Relay module in the order of least peak."""

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

    1. The module is optimised and fused as ``relay.build`` would do for ``target`` (default: the
       target in scope, else llvm), with ``params`` as constants, because fusion determines the
       operators and the tensors in memory. A module of fused calls is not changed in this step.
    2. The calls are ordered by ``method`` under ``options``. Each call is bound by a let; the lets
       are in the new order, which ``relay.build`` keeps.
    3. With ``executor="graph"``, outputs are in the graph executor's memory and count. An order is
       rejected if TVM's planner would need larger pools for it than for the given order. With
       ``executor="aot"``, outputs belong to the caller, and workspace that kernels allocate counts.

    The calls do not change, so outputs are bit-identical. Run the pass under the same
    ``PassContext`` as ``relay.build``. Raises :class:`UnsupportedError` for dynamic shapes and
    control flow. External functions are ordered like other calls.
    """

    target: tvm.target.Target | str | None = None
    method: str = field(default="auto", kw_only=True)
    options: Options = field(default_factory=Options, kw_only=True)
    executor: str = field(default="graph", kw_only=True)
    params: Mapping[str, tvm.nd.NDArray] | None = field(default=None, kw_only=True)

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module with its calls in the new order."""
        return schedule_module(
            mod, self.target, self.method, self.options, self.executor, self.params
        )[0]
