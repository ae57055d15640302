"""The forms a program is written in: a project, a Model Library Format tar, Zephyr, Arduino.

A form is one file here and one line of ``WRITERS``.
"""

from collections.abc import Callable

from tvm_serenity.firmware.emit.project import Files, Layout, project
from tvm_serenity.firmware.forms.arduino import arduino
from tvm_serenity.firmware.forms.mlf import model_library
from tvm_serenity.firmware.forms.zephyr import zephyr
from tvm_serenity.firmware.program import Program

Writer = Callable[[Program, Layout], Files]

PROJECT = "project"
WRITERS: dict[str, Writer] = {
    PROJECT: project,
    "mlf": model_library,
    "zephyr": zephyr,
    "arduino": arduino,
}
FORMATS = tuple(WRITERS)

OWN_ARENA = ("mlf", "arduino")
"""Forms with the one static arena; their callers have no place to pass another."""


def files(program: Program, layout: Layout, name: str) -> Files:
    """Return the files of ``program`` in the form ``name``, one of ``FORMATS``."""
    return WRITERS[name](program, layout)
