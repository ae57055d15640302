"""Relay (TVM up to 0.19): the passes, the graph executor's memory (``docs/relay.md``)."""

from tvm_serenity.passes.relay import SerenityRewrite, SerenitySchedule
from tvm_serenity.relay.arena import ArenaExecutor
from tvm_serenity.relay.storage import graph_of, pool_bytes, share_storage

__all__ = [
    "ArenaExecutor",
    "SerenityRewrite",
    "SerenitySchedule",
    "graph_of",
    "pool_bytes",
    "share_storage",
]
