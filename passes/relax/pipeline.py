"""The pipeline ``serenity``: TVM's CPU pipeline with our order and our arena."""

from tvm_serenity.runtime.pipeline import serenity_pipeline

__all__ = ["serenity_pipeline"]
