"""LeanKernels: kernels that need no memory beside their tensors."""

from collections.abc import Callable
from dataclasses import dataclass

import tvm

from tvm_serenity.kernels.tile import SCALAR, Tiling
from tvm_serenity.passes.module_pass import ModulePass
from tvm_serenity.relax.lean_kernels import lean_module


@tvm.transform.module_pass(opt_level=0, name="LeanKernels")
@dataclass
class LeanKernels(ModulePass):
    """Replace every kernel by its lean form (``tvm_serenity.kernels.lean``).

    1. A fresh module is lowered and fused first, as by ``SerenitySchedule``.
    2. Each kernel keeps its parameters and its arithmetic, element by element in the same order;
       padded copies, raw sums and epilogue stages are no longer stored.
    3. ``tiling`` cuts sums into register tiles (``kernels.tile``; ``tiling_for(target)``).
    4. ``tuned`` makes the lean forms instead (``kernels.measured.Known.leanest``).
    5. A kernel no step applies to stays as it is.
    """

    target: tvm.target.Target | str | None = None
    tiling: Tiling = SCALAR
    tuned: Callable[[tvm.tirx.PrimFunc], tvm.tirx.PrimFunc] | None = None

    def transform_module(
        self, mod: tvm.IRModule, _context: tvm.transform.PassContext
    ) -> tvm.IRModule:
        """Return the module with lean kernels."""
        return lean_module(mod, self.target, self.tiling, self.tuned)
