"""The passes for the TVM that is installed, installed as ``tvm_serenity.passes``."""

if __name__ == "passes":
    raise ImportError("import tvm_serenity.passes instead: the classes would exist twice")

from tvm_serenity.passes.relax import SerenityPlanMemory, SerenitySchedule

__all__ = ["SerenityPlanMemory", "SerenitySchedule"]
