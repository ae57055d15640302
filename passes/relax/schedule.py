"""SerenitySchedule: put the operators of every dataflow block into the order of least peak."""

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

    1. A module that still holds high-level operators is lowered and fused first, as
       ``tvm.compile`` would for ``target`` (default: the target in scope, else llvm): fusion
       decides what is an operator and what is materialised.
    2. Reshapes become views.
    3. Each dataflow block of each function is read as a graph (kernel workspace included; inputs
       and outputs of the function belong to its caller), ordered by ``method`` under
       ``options``, and written back. The order of a dataflow block's bindings is the order of
       execution.

    4. ``objective="traffic"`` orders for the least traffic with off-chip memory under Belady's
       replacement in ``on_chip_bytes`` instead (``docs/offchip.md``); inputs and outputs of the
       function are off-chip then, and ``method`` does not matter.

    5. What is None is as :class:`SerenityOptions` states it in the ``PassContext``; else "auto",
       without a limit, for the least peak.
    6. Regions for another backend (``FuseOpsByPattern``, ``RunCodegen``) are operators like others;
       bytes that they allocate themselves may be stated by symbol in the module's attribute
       ``serenity.workspace_bytes``.
    7. Symbolic sizes count at the largest values that the function states of them in its
       attribute ``tir_var_upper_bound``.

    The set of bindings and every kernel stay the same, so outputs are bit-identical. Symbolic
    shapes without a bound and control flow are refused with :class:`UnsupportedError`, which names
    the binding.
    """

    method: str | None = None
    target: tvm.target.Target | str | None = None
    options: Options | None = None
    objective: str | None = None
    on_chip_bytes: int | None = None

    def __post_init__(self) -> None:
        Stated(None, self.method, self.objective, self.on_chip_bytes)  # refuses what is none

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module in its new order."""
        method = "auto" if self.method is None and self.objective == "peak" else self.method
        order = ordering(method, self.options, self.on_chip_bytes)
        return order_module(lowered(mod, self.target), order)
