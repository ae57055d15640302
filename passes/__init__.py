"""The passes for the TVM that is installed, installed as ``tvm_serenity.passes``.

With a TVM that has Relay (up to 0.19) they are Relay passes, else those of apache-tvm 0.27's Relax.
Each class is an adapter: what it does is a function of ``tvm_serenity.relax`` or of
``tvm_serenity.relay``, which the library calls too.
"""

if __name__ == "passes":
    raise ImportError("import tvm_serenity.passes instead: the classes would exist twice")

from typing import TYPE_CHECKING

from tvm_serenity import tvm_installed

__all__ = ["SerenityRewrite", "SerenitySchedule"]

if TYPE_CHECKING or not tvm_installed.HAS_RELAY:
    from tvm_serenity.passes.relax import (
        LeanKernels,
        SerenityChannelsLast,
        SerenityCortexM,
        SerenityFoldChannels,
        SerenityOptions,
        SerenityPlanMemory,
        SerenityQuantize,
        SerenityRewrite,
        SerenitySchedule,
        partition_for_cortex_m,
        serenity_pipeline,
    )

    __all__ += [
        "LeanKernels",
        "SerenityChannelsLast",
        "SerenityCortexM",
        "SerenityFoldChannels",
        "SerenityOptions",
        "SerenityPlanMemory",
        "SerenityQuantize",
        "partition_for_cortex_m",
        "serenity_pipeline",
    ]
else:
    from tvm_serenity.passes.relay import SerenityRewrite, SerenitySchedule


def __getattr__(name: str) -> object:
    """Name what is missing: passes that only Relax has need another TVM."""
    if name in (
        "LeanKernels",
        "SerenityChannelsLast",
        "SerenityCortexM",
        "SerenityFoldChannels",
        "SerenityOptions",
        "SerenityPlanMemory",
        "SerenityQuantize",
        "partition_for_cortex_m",
        "serenity_pipeline",
    ):
        tvm_installed.require_relax()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
