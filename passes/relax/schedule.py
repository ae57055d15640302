"""SerenitySchedule: put the operators of every dataflow block into the order of least peak."""

from dataclasses import dataclass, field

import tvm

from tvm_serenity.errors import InputError
from tvm_serenity.passes.module_pass import ModulePass
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

    The set of bindings and every kernel stay the same, so outputs are bit-identical. Symbolic
    shapes and control flow are refused with :class:`UnsupportedError`, which names the binding.
    """

    method: str = "auto"
    target: tvm.target.Target | str | None = None
    options: Options = field(default_factory=Options)
    objective: str = "peak"
    on_chip_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.objective not in ("peak", "traffic"):
            raise InputError(f"objective={self.objective!r}: there are 'peak' and 'traffic'")
        if (self.objective == "traffic") != (self.on_chip_bytes is not None):
            raise InputError("on_chip_bytes goes with objective='traffic', and is needed there")

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module in its new order."""
        order = ordering(self.method, self.options, self.on_chip_bytes)
        return order_module(lowered(mod, self.target), order)
