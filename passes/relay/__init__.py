"""Relay passes (TVM up to 0.19)."""

from tvm_serenity import tvm_installed

tvm_installed.require_relay()  # before anything that fails without

from tvm_serenity.passes.relay.rewrite import SerenityRewrite
from tvm_serenity.passes.relay.schedule import SerenitySchedule

__all__ = ["SerenityRewrite", "SerenitySchedule"]
