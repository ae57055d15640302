"""All commands, registered by importing them."""

from tvm_serenity.cli import compiling, inspect, plan, schedule, zoo

__all__ = ["compiling", "inspect", "plan", "schedule", "zoo"]
