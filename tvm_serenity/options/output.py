"""Options of written files and of printed output."""

from dataclasses import dataclass
from pathlib import Path

from tvm_serenity.options.option import Conflict, Option, OptionGroup, option
from tvm_serenity.options.rows import not_in_steps
from tvm_serenity.system.plots import check_plot

PROJECT = "project"
FORMATS = (PROJECT, "mlf", "zephyr", "arduino")
"""The output formats of firmware (``firmware.formats``)."""
OWN_ARENA = ("mlf", "arduino")
"""Formats with one static arena; their callers cannot pass another."""

OUTPUT = Option(flag="--output", short="-o", help="Write the result to this file.", metavar="FILE")
PLOT = Option(
    flag="--plot", metavar="FILE", help="Draw the result (.svg .png .pdf).", check=check_plot
)


@dataclass(frozen=True, kw_only=True)
class NamePrefix(OptionGroup):
    """``name``: prefix of all C names; by default that of the model file, else "model"."""

    name: str | None = option(
        None, Option(flag="--name", help="Prefix C names with this. [default: the file's name]")
    )


@dataclass(frozen=True, kw_only=True)
class Directory(OptionGroup):
    """``output``: the directory to write, None for none; ``force``: replace its content."""

    output: str | Path | None = option(
        None,
        Option(
            flag="--output", short="-o", help="Write the project to this directory.", metavar="DIR"
        ),
    )
    force: bool = option(False, Option(flag="--force", help="Replace the content of DIR."))


@dataclass(frozen=True, kw_only=True)
class BuildOutput(NamePrefix, Directory):
    """Options of the files that ``build`` writes.

    * ``name``: prefix of all C names; by default that of the model file, else "model".
    * ``format``: one of ``FORMATS``; ``output``: the directory to write, None for none; ``force``:
      replace its content.
    """

    format: str = option(
        PROJECT,
        Option(
            flag="--format",
            help="Write a project, or the format of another build system.",
            choices=FORMATS,
            conflicts=(
                *not_in_steps("incremental inference is written as a project"),
                Conflict(
                    "codegen", "an Arduino library consists of sources alone", mine=("arduino",)
                ),
            ),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Shown(OptionGroup):
    """Options of printed output; functions do not take them. ``json``: print JSON, not text."""

    json: bool = option(False, Option(flag="--json", help="Print JSON."))
