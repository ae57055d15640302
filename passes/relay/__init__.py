"""Relay passes (TVM up to 0.19)."""

from tvm_serenity import tvm_installed

tvm_installed.require_relay()  # Before the imports below, whose errors would be unclear.

from tvm_serenity.passes.relay.rewrite import SerenityRewrite
from tvm_serenity.passes.relay.schedule import SerenitySchedule

__all__ = ["SerenityRewrite", "SerenitySchedule"]
