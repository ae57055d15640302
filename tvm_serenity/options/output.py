"""Options of written files and of printed output."""

from dataclasses import dataclass
from pathlib import Path

from tvm_serenity.options.option import Conflict, Need, Option, OptionGroup, option
from tvm_serenity.options.rows import not_in_steps
from tvm_serenity.system.plots import check_plot

PROJECT = "project"


@dataclass(frozen=True)
class OutputFormat:
    """A form of firmware: the module ``firmware.formats.NAME`` writes it ("-" as "_").

    ``use``: what a user does next with the folder OUTPUT of the network NAME. ``own_arena``: it has
    one static arena, and callers cannot pass another. ``sources_only``: it takes no object files.
    ``data``: the model is data for kernels that many models share.
    """

    name: str
    use: str
    own_arena: bool = False
    sources_only: bool = False
    data: bool = False


OUTPUT_FORMATS = (
    OutputFormat(PROJECT, "serenity verify {output}"),
    OutputFormat(
        "sources",
        "add {output} to your IDE's project, as source folder and include path",
        sources_only=True,
    ),
    OutputFormat(
        "mlf",
        "unpack {output}/{name}.tar; include codegen/host/include/tvmgen_{name}.h",
        own_arena=True,
    ),
    OutputFormat("zephyr", "cmake -DZEPHYR_EXTRA_MODULES={absolute}"),
    OutputFormat("esp-idf", "idf.py -DEXTRA_COMPONENT_DIRS={absolute} build", sources_only=True),
    OutputFormat("platformio", "pio pkg install --library file://{absolute}", sources_only=True),
    OutputFormat(
        "arduino", "arduino-cli compile --library {output}", own_arena=True, sources_only=True
    ),
    OutputFormat(
        "blob",
        "load {output}/{name}.blob with the kernel set; docs/how-to/blob.md",
        sources_only=True,
        data=True,
    ),
)
FORMATS = tuple(one.name for one in OUTPUT_FORMATS)
OWN_ARENA = tuple(one.name for one in OUTPUT_FORMATS if one.own_arena)
SOURCES_ONLY = tuple(one.name for one in OUTPUT_FORMATS if one.sources_only)
DATA = tuple(one.name for one in OUTPUT_FORMATS if one.data)
SOURCES = tuple(one.name for one in OUTPUT_FORMATS if not one.data)

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
    * ``labels``: the file with the labels of the first output's elements, one a line; None for
      those that a ``.tflite`` file holds.
    * ``format``: one of ``FORMATS``; ``output``: the directory to write, None for none; ``force``:
      replace its content.
    * ``kernel_set``: the directory of the kernel set that runs a blob, None for one of its own;
      ``extend``: write that set with the kernels that it lacks.
    """

    labels: str | Path | None = option(
        None,
        Option(
            flag="--labels",
            help="Label the classes with the lines of this file. [default: the model's own labels]",
            metavar="FILE",
        ),
    )
    format: str = option(
        PROJECT,
        Option(
            flag="--format",
            help="Write a project, the format of another build system, or the model as data: blob.",
            choices=FORMATS,
            conflicts=(
                *not_in_steps("incremental inference is written as a project"),
                Conflict("codegen", "the format consists of sources alone", mine=SOURCES_ONLY),
                Conflict("stream_input", "its loader runs all calls at once", mine=DATA),
                Conflict("constants", "kernels read constants from the blob", mine=DATA),
                Conflict("external_arena", "its loader always takes an arena", mine=DATA),
                Conflict("opaque", "its kernels are those of the set", mine=DATA),
                Conflict("labels", "it has no labels", mine=DATA),
            ),
        ),
    )
    kernel_set: str | Path | None = option(
        None,
        Option(
            flag="--kernels",
            help="Write only a blob, for the kernel set in this directory, and refuse a model "
            "whose kernels the set lacks.",
            metavar="DIR",
            conflicts=(Conflict("format", "only a blob has a kernel set", values=SOURCES),),
        ),
    )
    extend: bool = option(
        False,
        Option(
            flag="--extend",
            help="Write a kernel set that has those of --kernels and all that the model needs; "
            "it also runs the blobs of the earlier set.",
            needs=(Need("kernel_set", "it is the set to extend"),),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Shown(OptionGroup):
    """Options of printed output; functions do not take them. ``json``: print JSON, not text."""

    json: bool = option(False, Option(flag="--json", help="Print JSON."))
