"""All commands, registered by importing them."""

from tvm_serenity.cli import check, compiling, inspect, offchip, plan, rewrite, schedule, zoo

__all__ = ["check", "compiling", "inspect", "offchip", "plan", "rewrite", "schedule", "zoo"]
