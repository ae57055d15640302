"""The pipeline ``serenity``: TVM's CPU pipeline with our order and our arena.

    tvm.compile(mod, target="llvm", relax_pipeline=relax.get_pipeline("serenity"))

TVM knows the name wherever ``tvm_serenity`` is imported (``tvm_serenity.pipeline_hook``).
"""

from collections.abc import Callable
from typing import Any

import tvm

from tvm_serenity import compat
from tvm_serenity.errors import InputError
from tvm_serenity.kernels.tile import Tiling, tiling_for
from tvm_serenity.plan import PlanOptions
from tvm_serenity.relax.lean_kernels import lean_module
from tvm_serenity.relax.lower import lowered
from tvm_serenity.relax.plan_memory import plan_module
from tvm_serenity.relax.quantize import quantized_module, rounding_of
from tvm_serenity.relax.rewrite import rewrite_by
from tvm_serenity.relax.schedule import order_module, ordering
from tvm_serenity.rewrite import Options as Rules
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
    order = ordering(method, options or Options())

    def run(mod: tvm.IRModule) -> Any:
        if quantized == "off" and rounding_of(mod) is not None:
            raise InputError(
                "quantized='off': the module was imported with integer kernels; "
                "import it by to_relax(..., integers='off')"
            )
        target = compat.current_target()
        steps: list[tuple[str, bool, Callable[[Any], Any]]] = [
            ("SerenityQuantize", quantized == "auto", lambda m: quantized_module(m, rounding)),
            ("SerenityRewrite", bool(rewrite), lambda m: rewrite_by(m, Rules(rewrite), target)),
            ("LeanKernels", lean, lambda m: lean_module(m, target, tiling or tiling_for(target))),
            ("SerenitySchedule", True, lambda m: order_module(lowered(m, target), order)),
            (
                "SerenityPlanMemory",
                True,
                lambda m: plan_module(m, "fresh", planner, plan_options, target),
            ),
        ]
        passes = [compat.named_pass(name, apply) for name, wanted, apply in steps if wanted]
        with target:
            return tvm.transform.Sequential([*passes, compat.after_planning(target)])(mod)

    return compat.named_pass("serenity", run)
