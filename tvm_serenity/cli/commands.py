"""All commands, registered by importing them."""

from tvm_serenity.cli import compile as compile_command
from tvm_serenity.cli import inspect, plan, schedule, zoo

__all__ = ["compile_command", "inspect", "plan", "schedule", "zoo"]
