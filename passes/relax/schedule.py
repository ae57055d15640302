"""SerenitySchedule: puts the operators of each dataflow block in the order of least peak."""

from dataclasses import dataclass

import tvm

from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.relax.in_force import Stated
from tvm_serenity.relax.lower import lowered
from tvm_serenity.relax.schedule import order_module, ordering
from tvm_serenity.schedule import Options


@tvm.transform.module_pass(opt_level=0, name="SerenitySchedule")
@dataclass
class SerenitySchedule(ModulePass):
    """Order the operators of each dataflow block for the least peak memory.

    1. A module with high-level operators is first lowered and fused, as ``tvm.compile`` would do
       for ``target`` (default: the target in scope, else llvm), because fusion determines the
       operators and the tensors in memory.
    2. Reshapes become views.
    3. Each dataflow block of each function is ordered by ``method`` under ``options``. Kernel
       workspace counts; the function's inputs and outputs belong to the caller and do not count.
       The bindings of a dataflow block run in their order.
    4. ``objective="traffic"`` minimises the traffic with off-chip memory instead, under Belady's
       replacement in ``on_chip_bytes`` (``docs/offchip.md``). Inputs and outputs of the function
       are then off-chip, and ``method`` has no effect.
    5. Arguments that are None have the values of :class:`SerenityOptions` in the ``PassContext``;
       without it, the method is "auto", the objective is the least peak, and there is no limit.
    6. Regions for another backend (``FuseOpsByPattern``, ``RunCodegen``) are operators too. The
       module's attribute ``serenity.workspace_bytes`` may state the bytes that they allocate
       themselves, by symbol.
    7. Symbolic sizes have the largest values that the function's attribute
       ``tir_var_upper_bound`` states.

    The pass changes no binding and no kernel, so outputs are bit-identical. Raises
    :class:`UnsupportedError`, which names the binding, for symbolic shapes without a bound and for
    control flow.
    """

    method: str | None = None
    target: tvm.target.Target | str | None = None
    options: Options | None = None
    objective: str | None = None
    on_chip_bytes: int | None = None

    def __post_init__(self) -> None:
        Stated(None, self.method, self.objective, self.on_chip_bytes)  # Raises for invalid values.

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module with its operators in the new order."""
        method = "auto" if self.method is None and self.objective == "peak" else self.method
        order = ordering(method, self.options, self.on_chip_bytes)
        return order_module(lowered(mod, self.target), order)
