"""The registry of commands; importing the file of a command registers it."""

from collections.abc import Sequence
from importlib import import_module

SPARSE = ("sparse_bench", "sparse_build", "sparse_figures", "sparse_grow", "sparse_order")
FILES: dict[str, tuple[str, ...]] = {
    "boards": ("boards",),
    "build": ("build",),
    "check": ("check",),
    "compile": ("compile",),
    "explain": ("explain",),
    "fit": ("fit",),
    "inspect": ("inspect",),
    "interface": ("interface",),
    "latency": ("latency",),
    "offchip": ("offchip",),
    "paper": ("paper",),
    "plan": ("plan",),
    "replay": ("replay",),
    "report": ("report",),
    "rewrite": ("rewrite",),
    "rows": ("rows",),
    "run": ("run",),
    "schedule": ("schedule",),
    "sparse": SPARSE,
    "tune": ("tune",),
    "verify": ("verify",),
    "zoo": ("zoo",),
}
"""The files of this package that register each command, by the name of the command."""


def register(arguments: Sequence[str] | None = None) -> None:
    """Register the command that ``arguments`` name first; all commands if they name none.

    The files of other commands are not imported, so that a command starts without their imports.
    """
    asked = next((word for word in arguments or () if not word.startswith("-")), "")
    for name in [asked] if asked in FILES else FILES:
        for file in FILES[name]:
            import_module(f"tvm_serenity.cli.{file}")
