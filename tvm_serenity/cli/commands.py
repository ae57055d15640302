"""The commands, each registered by importing its file: one that is asked for, or all of them."""

from collections.abc import Sequence
from importlib import import_module

SPARSE = ("sparse_bench", "sparse_figures", "sparse_grow", "sparse_order")
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
"""The files of this package that register each command."""


def register(arguments: Sequence[str] | None = None) -> None:
    """Register the command that ``arguments`` begin with; all of them where they name none.

    What is not asked for is not imported: a command that refuses a model ends at once.
    """
    asked = next((word for word in arguments or () if not word.startswith("-")), "")
    for name in [asked] if asked in FILES else FILES:
        for file in FILES[name]:
            import_module(f"tvm_serenity.cli.{file}")
