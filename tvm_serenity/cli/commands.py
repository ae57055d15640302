"""All commands, registered by importing them."""

from tvm_serenity.cli import (
    boards,
    build,
    check,
    compiling,
    explain,
    inspect,
    offchip,
    plan,
    report,
    rewrite,
    run,
    schedule,
    verify,
    zoo,
)

__all__ = [
    "boards",
    "build",
    "check",
    "compiling",
    "explain",
    "inspect",
    "offchip",
    "plan",
    "report",
    "rewrite",
    "run",
    "schedule",
    "verify",
    "zoo",
]
