"""SerenityPlanMemory: one arena for everything a function computes."""

from dataclasses import dataclass

import tvm

from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.plan import PlanOptions
from tvm_serenity.relax.plan_memory import plan_module


@tvm.transform.module_pass(opt_level=0, name="SerenityPlanMemory")
@dataclass
class SerenityPlanMemory(ModulePass):
    """Give every tensor of ``main`` an offset in one arena, in the order the module has.

    1. A fresh module is lowered and fused first, as by ``SerenitySchedule``.
    2. Live ranges follow from the order of the bindings; reshapes share their source's bytes;
       the scratch that kernels would allocate themselves is a range of one step.
    3. ``main`` allocates one storage and makes every tensor at its planned offset; kernels take
       their tensors at any offset and their scratch from the arena.
    4. Parameters stay in the caller's memory. With ``outputs="fresh"`` (the default) the results
       are allocated apart at every call and belong to the caller; with ``outputs="arena"`` they
       lie in the arena, which is allocated at every call as well, and keep all of it alive.

    5. What a region for another backend reads or writes lies at the start of a storage of its own
       (many such functions do not look at a tensor's offset), shared by tensors that are never
       alive together; what fits there while it is free does not take room in the arena.
    6. Symbolic sizes are planned at the largest values that ``main`` states of them in its
       attribute ``tir_var_upper_bound``; a call with larger ones fails before any kernel runs.
    7. Without ``options``, the time limit is as :class:`SerenityOptions` states it.

    The values computed do not change: same kernels, same order, other addresses. Refused with
    :class:`UnsupportedError`: symbolic shapes without a bound, control flow, calls that are
    neither kernels nor such regions.
    """

    outputs: str = "fresh"
    method: str = "auto"
    options: PlanOptions | None = None
    target: tvm.target.Target | str | None = None

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module with ``main`` in one arena."""
        return plan_module(mod, self.outputs, self.method, self.options, self.target)
