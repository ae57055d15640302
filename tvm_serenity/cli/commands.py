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
    sparse_grow,
    sparse_order,
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
    "sparse_grow",
    "sparse_order",
    "verify",
    "zoo",
]
