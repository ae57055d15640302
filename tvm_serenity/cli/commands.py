"""All commands, registered by importing them."""

from tvm_serenity.cli import compiling, inspect, offchip, plan, schedule, zoo

__all__ = ["compiling", "inspect", "offchip", "plan", "schedule", "zoo"]
