"""Firmware: networks as bare-metal C projects, built, measured, run and verified.

    from tvm_serenity import firmware

    project = firmware.build("kws.tflite", "netduinoplus2", firmware.Settings(output="kws"))

``build`` does everything that ``serenity build`` does: ``compile`` turns a Relax module into a
``program`` of C kernels and calls on planned memory, with kernels of the library (``kernels``) or
from TIR (``lower``); ``check`` replays the calls and compares results; ``emit`` writes C, and
``formats`` other projects; ``board`` links, measures and runs. A project is verified in QEMU by
``serenity verify``.
"""

from typing import TYPE_CHECKING

from tvm_serenity.system.lazy import lazily

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

__getattr__, __dir__ = lazily(__name__, _LAZY)
