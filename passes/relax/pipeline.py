"""The pipeline ``serenity``: TVM's CPU pipeline with this package's scheduler and planner."""

from tvm_serenity.runtime.pipeline import serenity_pipeline

__all__ = ["serenity_pipeline"]
