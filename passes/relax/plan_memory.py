"""SerenityPlanMemory: places all tensors of a function in one arena."""

from dataclasses import dataclass

import tvm

from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.plan import PlanOptions
from tvm_serenity.relax.plan_memory import plan_module


@tvm.transform.module_pass(opt_level=0, name="SerenityPlanMemory")
@dataclass
class SerenityPlanMemory(ModulePass):
    """Place every tensor of ``main`` at an offset in one arena; the order does not change.

    1. A module with high-level operators is first lowered and fused, as by ``SerenitySchedule``.
    2. Live ranges follow from the order of the bindings. Reshapes share the bytes of their source.
       The scratch of a kernel is live for one step.
    3. ``main`` allocates one storage and creates each tensor at its planned offset. Kernels accept
       tensors at any offset, and take their scratch from the arena.
    4. Parameters stay in the caller's memory. With ``outputs="fresh"`` (the default), each call
       allocates the outputs separately, and they belong to the caller. With ``outputs="arena"``,
       the outputs are in the arena, which each call allocates, and they keep all of it alive.
    5. A tensor that a region for another backend reads or writes is at the start of a separate
       storage, because many such functions ignore a tensor's offset. Tensors that are never live
       together share such a storage. Other tensors that fit in it while it is free are placed
       there, not in the arena.
    6. Symbolic sizes are planned with the largest values that the attribute
       ``tir_var_upper_bound`` of ``main`` states. A call with larger values fails before any kernel
       runs.
    7. Without ``options``, the time limit is that of :class:`SerenityOptions`.

    Kernels and order do not change, so outputs are bit-identical. Raises :class:`UnsupportedError`
    for symbolic shapes without a bound, control flow, and calls that are neither kernels nor
    regions for another backend.
    """

    outputs: str = "fresh"
    method: str = "auto"
    options: PlanOptions | None = None
    target: tvm.target.Target | str | None = None

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module with the tensors of ``main`` in one arena."""
        return plan_module(mod, self.outputs, self.method, self.options, self.target)
