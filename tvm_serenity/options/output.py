"""Options on what is written, and on what is printed."""

from dataclasses import dataclass
from pathlib import Path

from tvm_serenity.options.option import Conflict, Option, OptionGroup, option
from tvm_serenity.options.rows import not_in_steps
from tvm_serenity.system.plots import check_plot

PROJECT = "project"
FORMATS = (PROJECT, "mlf", "zephyr", "arduino")
"""The forms that firmware is written in (``firmware.formats``)."""
OWN_ARENA = ("mlf", "arduino")
"""Forms with the one static arena; their callers have no place to pass another."""

OUTPUT = Option(flag="--output", short="-o", help="Write the result here.", metavar="FILE")
PLOT = Option(flag="--plot", metavar="FILE", help="Draw it (.svg .png .pdf).", check=check_plot)


@dataclass(frozen=True, kw_only=True)
class NamePrefix(OptionGroup):
    """``name``: prefix of all C names; by default the model file's, else "model"."""

    name: str | None = option(
        None, Option(flag="--name", help="NamePrefix of the C names. [default: the file's name]")
    )


@dataclass(frozen=True, kw_only=True)
class Directory(OptionGroup):
    """``output``: the directory that is written, None for none; ``force``: replace its content."""

    output: str | Path | None = option(
        None, Option(flag="--output", short="-o", help="Write the project here.", metavar="DIR")
    )
    force: bool = option(False, Option(flag="--force", help="Replace what DIR holds."))


@dataclass(frozen=True, kw_only=True)
class BuildOutput(NamePrefix, Directory):
    """What firmware is written as.

    * ``name``: prefix of all C names; by default the model file's, else "model".
    * ``format``: one of ``FORMATS``; ``output``: the directory that is written, None for none;
      ``force``: replace what it holds.
    """

    format: str = option(
        PROJECT,
        Option(
            flag="--format",
            help="project, or what another build system takes.",
            choices=FORMATS,
            conflicts=(
                *not_in_steps("it is written as a project"),
                Conflict("codegen", "a library is made of sources alone", mine=("arduino",)),
            ),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Shown(OptionGroup):
    """What a command prints; no function takes these options. ``json``: JSON instead of text."""

    json: bool = option(False, Option(flag="--json", help="Print JSON."))
