"""Finishes a build: writes the project of a program, measures it, compares it, and links it.

Everything happens in one folder, which becomes the output only if nothing fails.
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tvm_serenity.firmware.board import image
from tvm_serenity.firmware.check import loaded_constants
from tvm_serenity.firmware.check.drawn_inputs import DRAWN
from tvm_serenity.firmware.check.report import CheckReport
from tvm_serenity.firmware.emit.project import (
    METADATA,
    Files,
    Layout,
    metadata,
    metadata_json,
    project,
    write_files,
)
from tvm_serenity.firmware.formats import check_taken, files
from tvm_serenity.firmware.formats import facts as form_facts
from tvm_serenity.firmware.program import Array, Program
from tvm_serenity.firmware.result import REFERENCE, Project, packed
from tvm_serenity.options.output import PROJECT


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """A program that is placed on a board, and what remains to be done with it.

    * ``layout``: board and memory; its metadata describes the origin of the network.
    * ``form``: the format to write; ``output``: the directory to report, None for none;
      ``check``: compare before writing.
    * ``fitted``: returns the facts for JSON with a number of bytes of code (None if it cannot be
      measured), or raises :class:`FitError`.
    * ``compared``: returns the report of the comparison of the files of the project, and the
      expected value of every tensor.
    * ``drawn``: returns the description of the random inputs. ``extra_files``: further files.
    * ``notify``: is told what begins.
    """

    program: Program
    layout: Layout
    form: str
    output: str | Path | None
    check: bool
    fitted: Callable[[int | None], dict[str, Any]]
    compared: Callable[[Files], tuple[CheckReport, dict[str, Array]]]
    drawn: Callable[[], dict[str, Any]]
    extra_files: Files = field(default_factory=dict)
    notify: Callable[[str], None] = lambda _text: None


def finish(build: Unfinished, folder: Path) -> Project:
    """Write, measure, compare and link the project in ``folder``; return it.

    Of formats other than the project ``folder`` gets the files; the project is made aside.
    """
    program, form, linkable = build.program, build.form, _linkable(build)
    check_taken(program, build.layout, form)  # before what takes long
    with tempfile.TemporaryDirectory(prefix="serenity.") as aside:
        place = folder if form == PROJECT else Path(aside)
        texts = project(program, build.layout)
        write_files(texts, place)
        facts = build.fitted(_code_bytes(build, place) if linkable else None)
        report, reference = build.compared(texts)
        layout = with_metadata(build.layout, {"check": report.json(), DRAWN: build.drawn()})
        extras = {
            METADATA: metadata_json(program, layout).encode(),
            REFERENCE: packed(reference),
            **build.extra_files,
        }
        write_files(extras, place)
        if linkable:
            build.notify("compiling")
            image.linked(place, program)
            if build.check:
                loaded_constants.check(place, program)
    texts |= extras
    facts["check"] = {**report.json(), "text": report.text()}
    output = None if build.output is None else Path(build.output)
    made = Project(output, metadata(program, layout), reference, texts, facts)
    if form == PROJECT:
        return made
    texts = files(program, layout, form)
    own = form_facts(program, layout, form, texts, made)
    write_files(texts, folder)
    return replace(made, files=texts, facts={**facts, **own})


def origin_metadata(
    model: str | None, digest: str | None, command: str | None, more: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the metadata that every project has about the origin of its network, and ``more``."""
    return {
        "tool": f"tvm-serenity {version('tvm-serenity')}",
        "model": model,
        "model_sha256": digest,
        "command": command,
        **more,
    }


def with_metadata(layout: Layout, more: Mapping[str, Any]) -> Layout:
    """Return ``layout`` with further metadata."""
    return replace(layout, metadata={**(layout.metadata or {}), **more})


def _linkable(build: Unfinished) -> bool:
    return image.linkable(build.layout.board.architecture)


def _code_bytes(build: Unfinished, place: Path) -> int:
    """Return the bytes of flash of the project in ``place`` beside its constants."""
    build.notify("measuring code")
    layout, program = build.layout, build.program
    measured = image.measured(place, program, layout.board, layout.stack_bytes)
    return measured - program.constant_bytes
