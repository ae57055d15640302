"""Relax passes (apache-tvm 0.27)."""

from tvm_serenity import tvm_installed

tvm_installed.require_relax()  # Before the imports below, whose errors would be unclear.

from tvm_serenity.passes.relax.channels_last import SerenityChannelsLast
from tvm_serenity.passes.relax.cortex_m import SerenityCortexM, partition_for_cortex_m
from tvm_serenity.passes.relax.dilations import SerenityDilations
from tvm_serenity.passes.relax.fold_channels import SerenityFoldChannels
from tvm_serenity.passes.relax.lean_kernels import LeanKernels
from tvm_serenity.passes.relax.loops import SerenityLoops
from tvm_serenity.passes.relax.options import SerenityOptions
from tvm_serenity.passes.relax.pipeline import serenity_pipeline
from tvm_serenity.passes.relax.plan_memory import SerenityPlanMemory
from tvm_serenity.passes.relax.quantize import SerenityQuantize
from tvm_serenity.passes.relax.rewrite import SerenityRewrite
from tvm_serenity.passes.relax.schedule import SerenitySchedule
from tvm_serenity.passes.relax.tokens_first import SerenityTokensFirst

__all__ = [
    "LeanKernels",
    "SerenityChannelsLast",
    "SerenityCortexM",
    "SerenityDilations",
    "SerenityFoldChannels",
    "SerenityLoops",
    "SerenityOptions",
    "SerenityPlanMemory",
    "SerenityQuantize",
    "SerenityRewrite",
    "SerenitySchedule",
    "SerenityTokensFirst",
    "partition_for_cortex_m",
    "serenity_pipeline",
]
