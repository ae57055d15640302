"""All commands, registered by importing them."""

from tvm_serenity.cli import (
    boards,
    check,
    compiling,
    explain,
    inspect,
    offchip,
    plan,
    rewrite,
    schedule,
    zoo,
)

__all__ = [
    "boards",
    "check",
    "compiling",
    "explain",
    "inspect",
    "offchip",
    "plan",
    "rewrite",
    "schedule",
    "zoo",
]
