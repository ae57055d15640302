"""The passes for the installed TVM, available as ``tvm_serenity.passes``.

With a TVM that has Relay (up to 0.19), they are Relay passes; with apache-tvm 0.27, Relax passes.
Each class adapts a function of ``tvm_serenity.relax`` or ``tvm_serenity.relay``.
"""

if __name__ == "passes":
    raise ImportError(
        "import tvm_serenity.passes instead of passes, because each class would exist twice"
    )

from typing import TYPE_CHECKING

from tvm_serenity import tvm_installed

__all__ = ["SerenityRewrite", "SerenitySchedule"]

if TYPE_CHECKING or not tvm_installed.HAS_RELAY:
    from tvm_serenity.passes.relax import (
        LeanKernels,
        SerenityChannelsLast,
        SerenityCortexM,
        SerenityDilations,
        SerenityFoldChannels,
        SerenityLoops,
        SerenityOptions,
        SerenityPlanMemory,
        SerenityQuantize,
        SerenityRewrite,
        SerenitySchedule,
        SerenityTokensFirst,
        partition_for_cortex_m,
        serenity_pipeline,
    )

    __all__ += [
        "LeanKernels",
        "SerenityChannelsLast",
        "SerenityCortexM",
        "SerenityDilations",
        "SerenityFoldChannels",
        "SerenityLoops",
        "SerenityOptions",
        "SerenityPlanMemory",
        "SerenityQuantize",
        "SerenityTokensFirst",
        "partition_for_cortex_m",
        "serenity_pipeline",
    ]
else:
    from tvm_serenity.passes.relay import SerenityRewrite, SerenitySchedule


def __getattr__(name: str) -> object:
    """Raise an error that names the missing pass and the version of TVM that has it."""
    if name in (
        "LeanKernels",
        "SerenityChannelsLast",
        "SerenityCortexM",
        "SerenityDilations",
        "SerenityFoldChannels",
        "SerenityLoops",
        "SerenityOptions",
        "SerenityPlanMemory",
        "SerenityQuantize",
        "SerenityTokensFirst",
        "partition_for_cortex_m",
        "serenity_pipeline",
    ):
        tvm_installed.require_relax()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
