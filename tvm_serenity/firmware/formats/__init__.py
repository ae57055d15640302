"""The forms a program is written in.

A form is one file here, whose ``written`` returns the files, and one entry of ``OUTPUT_FORMATS``.
"""

from importlib import import_module

from tvm_serenity.firmware.emit.project import Files, Layout
from tvm_serenity.firmware.program import Program


def files(program: Program, layout: Layout, name: str) -> Files:
    """Return the files of ``program`` in the form ``name``, one of ``FORMATS``."""
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    found: Files = module.written(program, layout)
    return found
