"""Firmware for Cortex-M: programs as C projects, built, run and verified.

    from tvm_serenity import firmware

    project = firmware.build("kws.tflite", "netduinoplus2", firmware.Settings(output="kws"))

``build`` does all that ``serenity build`` does (``building``). A ``program`` is what is written,
whole or by rows: ``tir`` makes one from a Relax module, ``check`` replays it, ``emit`` writes it as
C (``library`` and ``walker`` are C that goes in), ``forms`` gives it another form; ``image`` links
and measures, ``execute`` runs, ``verify`` compares.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tvm_serenity.firmware.building import build
    from tvm_serenity.firmware.result import Project, load
    from tvm_serenity.firmware.settings import Settings

_LAZY = {
    "Project": "tvm_serenity.firmware.result",
    "Settings": "tvm_serenity.firmware.settings",
    "build": "tvm_serenity.firmware.building",
    "load": "tvm_serenity.firmware.result",
}
"""Where public names are made; imported on first use."""
__all__ = ["Project", "Settings", "build", "load"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
