"""The passes for the TVM that is installed, installed as ``tvm_serenity.passes``."""

if __name__ == "passes":
    raise ImportError("import tvm_serenity.passes instead: the classes would exist twice")

from tvm_serenity.passes.relax import (
    LeanKernels,
    SerenityPlanMemory,
    SerenityQuantize,
    SerenityRewrite,
    SerenitySchedule,
    serenity_pipeline,
)

__all__ = [
    "LeanKernels",
    "SerenityPlanMemory",
    "SerenityQuantize",
    "SerenityRewrite",
    "SerenitySchedule",
    "serenity_pipeline",
]
