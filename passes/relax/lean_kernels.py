"""LeanKernels: replaces kernels by kernels without scratch memory."""

from collections.abc import Callable
from dataclasses import dataclass

import tvm

from tvm_serenity.kernels.tile import SCALAR, Tiling
from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.relax.lean_kernels import lean_module


@tvm.transform.module_pass(opt_level=0, name="LeanKernels")
@dataclass
class LeanKernels(ModulePass):
    """Replace each kernel by its lean form (``tvm_serenity.kernels.lean``).

    1. A module with high-level operators is first lowered and fused, as by ``SerenitySchedule``.
    2. A lean kernel has the same parameters, and does the same arithmetic in the same order for
       each element. It stores no padded inputs, sums or intermediate results of the epilogue.
    3. ``tiling``: the register tiles of sums (``kernels.tile``; see ``tiling_for(target)``).
    4. ``tuned``: a function that creates the lean kernels instead, for example
       ``kernels.measured.Known.leanest``.
    5. A kernel without a lean form does not change.
    """

    target: tvm.target.Target | str | None = None
    tiling: Tiling = SCALAR
    tuned: Callable[[tvm.tirx.PrimFunc], tvm.tirx.PrimFunc] | None = None

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module with lean kernels."""
        return lean_module(mod, self.target, self.tiling, self.tuned)
