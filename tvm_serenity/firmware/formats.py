"""The forms a program is written in: a project, a Model Library Format tar, Zephyr, Arduino."""

from collections.abc import Callable

from tvm_serenity.firmware.emit.project import Files, Layout, project
from tvm_serenity.firmware.program import Program

Writer = Callable[[Program, Layout], Files]

WRITERS: dict[str, Writer] = {"project": project}
FORMATS = tuple(WRITERS)


def files(program: Program, layout: Layout, name: str) -> Files:
    """Return the files of ``program`` in the form ``name``, one of ``FORMATS``."""
    return WRITERS[name](program, layout)
