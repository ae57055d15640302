"""The forms a program is written in.

A form is one file here, whose ``written`` returns the files, and one entry of ``OUTPUT_FORMATS``.
If it does not take every program, its ``check_taken`` raises for the others.
If it is more than an arrangement of the project's sources, its ``described`` compares it with the
project and returns its facts.
"""

from importlib import import_module
from typing import Any

from tvm_serenity.firmware.emit.project import Files, Layout
from tvm_serenity.firmware.program import Program
from tvm_serenity.firmware.result import Project

Facts = dict[str, Any]


def files(program: Program, layout: Layout, name: str) -> Files:
    """Return the files of ``program`` in the form ``name``, one of ``FORMATS``."""
    found: Files = _module(name).written(program, layout)
    return found


def check_taken(program: Program, layout: Layout, name: str) -> None:
    """Raise :class:`SerenityError` if the form ``name`` does not take ``program``."""
    check = getattr(_module(name), "check_taken", None)
    if check is not None:
        check(program, layout)


def facts(program: Program, layout: Layout, name: str, made: Files, project: Project) -> Facts:
    """Return the facts of the files ``made`` that the form ``name`` alone has.

    A form that has such facts compares its files with ``project``, which is written as a project.
    """
    describe = getattr(_module(name), "described", None)
    return {} if describe is None else {name: describe(program, layout, made, project)}


def _module(name: str) -> Any:
    return import_module(f"{__name__}.{name.replace('-', '_')}")
