"""LeanKernels: kernels that need no memory beside their tensors."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tvm

from tvm_serenity import compat
from tvm_serenity.kernels.lean import lean
from tvm_serenity.kernels.tile import SCALAR, Tiling
from tvm_serenity.relax.lower import lowered


@tvm.transform.module_pass(opt_level=0, name="LeanKernels")
@dataclass
class LeanKernels:
    """Replace every kernel by its lean form (``tvm_serenity.kernels.lean``).

    1. A fresh module is lowered and fused first, as by ``SerenitySchedule``.
    2. Each kernel keeps its parameters and its arithmetic, element by element in the same order;
       padded copies, raw sums and epilogue stages are no longer stored.
    3. ``tiling`` cuts sums into register tiles (``kernels.tile``; ``tiling_for(target)``).
    4. ``tuned`` makes the lean forms instead (``kernels.tune.tuned``).
    5. A kernel no step applies to stays as it is.
    """

    target: Any = None
    tiling: Tiling = SCALAR
    tuned: Callable[[Any], Any] | None = None

    def transform_module(self, mod: Any, _context: Any) -> Any:
        """Return the module with lean kernels."""
        mod = lowered(mod, self.target)
        form = self.tuned or (lambda kernel: lean(kernel, self.tiling))
        functions = {
            name: form(f) if compat.is_prim_func(f) and compat.has_blocks(f) else f
            for name, f in mod.functions.items()
        }
        return tvm.IRModule(functions, attrs=mod.attrs)
