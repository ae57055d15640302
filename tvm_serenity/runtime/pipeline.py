"""The pipeline ``serenity``: a Relax module to kernels in one arena, each compared with TVM's own.

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
    """Return the pass from a fresh or lowered module to one the Relax VM can run.

    ``method`` and ``options`` are the scheduler's, ``planner`` and ``plan_options`` the memory
    planner's. ``method="given"`` keeps the order: what the arena alone is worth. ``lean=False``
    keeps TVM's default kernels and places the scratch they need in the arena. ``rewrite``,
    ``quantized``, ``rounding``, ``tiling``, ``channels`` and ``measured``: as in :class:`Steps`.

    Every distinct kernel is compared with TVM's own as compiled (``validation.compiling``), unless
    it was before; a difference raises :class:`WrongResultError`. ``validate``: False leaves that
    out, a number is the seconds it may take; by default as the ``PassContext`` states.
    """
    Stated(validate=validate)  # raises where it is neither
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
    """Seconds that comparing kernels may take."""
    if validate is None or validate is True:
        return DEFAULT_S
    return float(validate)
