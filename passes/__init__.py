"""The passes for the TVM that is installed, installed as ``tvm_serenity.passes``.

With a TVM that has Relay (up to 0.19) they are Relay passes, else those of apache-tvm 0.27's Relax.
"""

if __name__ == "passes":
    raise ImportError("import tvm_serenity.passes instead: the classes would exist twice")

from tvm_serenity import tvm_installed

__all__ = ["SerenityRewrite", "SerenitySchedule"]

if tvm_installed.HAS_RELAY:
    from tvm_serenity.passes.relay import SerenityRewrite, SerenitySchedule
else:
    from tvm_serenity.passes.relax import (
        LeanKernels,
        SerenityPlanMemory,
        SerenityQuantize,
        SerenityRewrite,
        SerenitySchedule,
        serenity_pipeline,
    )

    __all__ += ["LeanKernels", "SerenityPlanMemory", "SerenityQuantize", "serenity_pipeline"]


def __getattr__(name: str) -> object:
    """Name what is missing: passes that only Relax has need another TVM."""
    if name in ("LeanKernels", "SerenityPlanMemory", "SerenityQuantize", "serenity_pipeline"):
        tvm_installed.require_relax()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
