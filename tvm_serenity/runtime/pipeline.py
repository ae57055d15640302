"""The pipeline "serenity": it compiles a Relax module to validated kernels in one arena.

    tvm.compile(mod, target="llvm", relax_pipeline=relax.get_pipeline("serenity"))

TVM knows the name wherever ``tvm_serenity`` is imported (``tvm_serenity.pipeline_hook``).
"""

from typing import Any

import tvm

from tvm_serenity.kernels.measured import SHIPPED
from tvm_serenity.kernels.tile import Tiling
from tvm_serenity.plan import PlanOptions
from tvm_serenity.quantize.choices import FOLD
from tvm_serenity.relax.in_force import Stated, stated
from tvm_serenity.relax.pipeline import Planning, Prepared, Steps, pipeline_of
from tvm_serenity.schedule import Options
from tvm_serenity.validation.compiling import DEFAULT_S, Modules, validated


def serenity_pipeline(
    method: str | None = None,
    options: Options | None = None,
    planner: str = "auto",
    plan_options: PlanOptions | None = None,
    lean: bool = True,
    rewrite: str = "",
    quantized: str = "auto",
    rounding: str = "auto",
    tiling: Tiling | None = None,
    channels: str = FOLD,
    measured: str = SHIPPED,
    validate: bool | float | None = None,
) -> Any:
    """Return the pass from a fresh or lowered module to one that the Relax VM can run.

    ``method`` and ``options`` select the scheduler, ``planner`` and ``plan_options`` the memory
    planner. ``method="given"`` keeps the order and shows the effect of the arena alone.
    ``lean=False`` keeps TVM's default kernels and places their scratch in the arena. ``rewrite``,
    ``quantized``, ``rounding``, ``tiling``, ``channels`` and ``measured`` are fields of
    :class:`Steps`.

    Each distinct kernel is compared with TVM's own compiled kernel (``validation.compiling``)
    unless an earlier run has done so; a difference raises :class:`WrongResultError`. ``validate``:
    False skips the comparison, a number is its time limit in seconds; the default is in the
    ``PassContext``.
    """
    Stated(validate=validate)  # raises if it is neither a bool nor a number
    steps = Steps(
        quantized=quantized,
        rounding=rounding,
        channels=channels,
        rewrite=rewrite,
        lean=lean,
        tiling=tiling,
        measured=measured,
    )
    planning = Planning(method=method, options=options, planner=planner, plan_options=plan_options)

    def check(made: Prepared, placed: tvm.IRModule) -> None:
        seconds = _seconds(validate if validate is not None else stated().validate)
        if seconds > 0:
            validated(Modules(made.plain, made.kernels, placed), made.target, seconds)

    return pipeline_of(steps, planning, check)


def _seconds(validate: bool | float | None) -> float:
    """Return the time limit of the kernel comparison in seconds."""
    if validate is None or validate is True:
        return DEFAULT_S
    return float(validate)
