"""The pipeline ``serenity``: TVM's CPU pipeline with our order and our arena.

    tvm.compile(mod, target="llvm", relax_pipeline=relax.get_pipeline("serenity"))

TVM knows the name wherever ``tvm_serenity`` is imported (``tvm_serenity.pipeline_hook``).
"""

from typing import Any

import tvm

from tvm_serenity import compat
from tvm_serenity.errors import InputError
from tvm_serenity.kernels.tile import Tiling, tiling_for
from tvm_serenity.plan import PlanOptions
from tvm_serenity.relax.lean_kernels import LeanKernels
from tvm_serenity.relax.plan_memory import SerenityPlanMemory
from tvm_serenity.relax.quantize import SerenityQuantize
from tvm_serenity.relax.rewrite import SerenityRewrite
from tvm_serenity.relax.schedule import SerenitySchedule
from tvm_serenity.schedule import Options

QUANTIZED = ("auto", "off")
"""What to do with quantised models: integer kernels, or float as imported."""


def serenity_pipeline(
    method: str = "auto",
    options: Options | None = None,
    planner: str = "auto",
    plan_options: PlanOptions | None = None,
    lean: bool = True,
    rewrite: str = "",
    quantized: str = "auto",
    rounding: str = "tflite",
    tiling: Tiling | None = None,
) -> Any:
    """Return the pass from a fresh or lowered module to one the Relax VM can run.

    ``method`` and ``options`` are the scheduler's, ``planner`` and ``plan_options`` the memory
    planner's. ``method="given"`` keeps the order: what the arena alone is worth. ``lean=False``
    keeps TVM's default kernels and places the scratch they need in the arena. ``rewrite``: the
    rules of ``SerenityRewrite`` to choose from ("all", names), none by default. ``quantized``:
    "auto" turns quantised models into integer kernels (``SerenityQuantize`` with ``rounding``),
    "off" leaves them as float operators between ``dequantize`` and ``quantize``. ``tiling``: of the
    lean kernels, by default the target's.
    """
    if quantized not in QUANTIZED:
        raise InputError(f"quantized={quantized!r}: there are {', '.join(QUANTIZED)}")

    @tvm.transform.module_pass(opt_level=0, name="serenity")
    def run(mod: Any, _context: Any) -> Any:
        target = compat.current_target()
        with target:
            return tvm.transform.Sequential(
                [
                    *([SerenityQuantize(rounding)] if quantized == "auto" else []),
                    *([SerenityRewrite(rewrite, target=target)] if rewrite else []),
                    *([LeanKernels(target, tiling or tiling_for(target))] if lean else []),
                    SerenitySchedule(method, target, options or Options()),
                    SerenityPlanMemory("fresh", planner, plan_options or PlanOptions(), target),
                    compat.after_planning(target),
                ]
            )(mod)

    return run
