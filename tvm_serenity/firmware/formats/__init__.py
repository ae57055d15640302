"""The forms a program is written in: a project, a Model Library Format tar, Zephyr, Arduino.

A form is one file here and one line of ``WRITERS``.
"""

from collections.abc import Callable

from tvm_serenity.firmware.emit.project import Files, Layout, project
from tvm_serenity.firmware.formats.arduino import arduino
from tvm_serenity.firmware.formats.mlf import model_library
from tvm_serenity.firmware.formats.zephyr import zephyr
from tvm_serenity.firmware.program import Program
from tvm_serenity.options.output import PROJECT

Writer = Callable[[Program, Layout], Files]

WRITERS: dict[str, Writer] = {
    PROJECT: project,
    "mlf": model_library,
    "zephyr": zephyr,
    "arduino": arduino,
}


def files(program: Program, layout: Layout, name: str) -> Files:
    """Return the files of ``program`` in the form ``name``, one of ``FORMATS``."""
    return WRITERS[name](program, layout)
