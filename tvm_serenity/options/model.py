"""Options of reading a model, and of its arithmetic."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tvm_serenity.errors import InputError
from tvm_serenity.options.option import Conflict, HelpGroup, Option, OptionGroup, option
from tvm_serenity.quantize.choices import (
    AUTO,
    CHANNELS,
    DYNAMIC_RANGES,
    FOLD,
    LITERT,
    QUANTIZED,
)
from tvm_serenity.quantize.fixed import ROUNDINGS
from tvm_serenity.system.sizes import size_bytes

IN_C = "a C function is called from C sources"


def dims_of(items: Sequence[str]) -> dict[str, int]:
    """Return sizes of named dimensions from texts of the form NAME=SIZE."""
    sizes = {}
    for item in items:
        name, _, size = item.rpartition("=")
        if not name or not size.isdigit():
            raise InputError(f"--dim {item!r}: write NAME=SIZE, like batch=1")
        sizes[name] = int(size)
    return sizes


def workspaces_of(items: Sequence[str]) -> dict[str, int]:
    """Return the workspaces in bytes of user-computed operators, from texts NAME=SIZE."""
    workspaces: dict[str, int] = {}
    for item in items:
        name, _, size = item.rpartition("=")
        if not name:
            raise InputError(f"--opaque {item!r}: write NAME=SIZE, like ethos-u=64K")
        if name in workspaces:
            raise InputError(f"--opaque {name}: the operator is given twice; give it once")
        workspaces[name] = size_bytes(size)
    return workspaces


@dataclass(frozen=True, kw_only=True)
class ReadOptions(OptionGroup):
    """Options of reading a file.

    * ``dims``: sizes of dimensions of its inputs, by their names or by ``INPUT:AXIS``.
      ``signature``: its entry point, if it has several.
    """

    dims: Mapping[str, int] = option(
        {},
        Option(
            flag="--dim",
            help="Set the size of a dimension by its name, or by INPUT:AXIS.",
            group=HelpGroup.MODEL,
            metavar="NAME=SIZE",
            read=dims_of,
        ),
    )
    signature: str | None = option(
        None,
        Option(
            flag="--signature",
            help="Read this entry point (.tflite).",
            group=HelpGroup.MODEL,
            metavar="NAME",
        ),
    )


@dataclass(frozen=True, kw_only=True)
class OpaqueOptions(OptionGroup):
    """``opaque``: operators that the user's code computes, with their workspace in bytes."""

    opaque: Mapping[str, int] = option(
        {},
        Option(
            flag="--opaque",
            help="Plan around operator NAME, which your own code computes.",
            group=HelpGroup.MODEL,
            metavar="NAME=SIZE",
            read=workspaces_of,
            conflicts=(Conflict("codegen", IN_C),),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Quantized(OptionGroup):
    """``quantized``: "auto" for integers wherever the model has them, "off" for float."""

    quantized: str = option(
        AUTO,
        Option(
            flag="--quantized",
            help="Run quantized models by integer kernels (auto), or by float ones as TVM imports "
            "them (off).",
            group=HelpGroup.MODEL,
            choices=QUANTIZED,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class IntegerOptions(Quantized):
    """Options of the arithmetic of a quantized model.

    * ``dynamic_range``: float operators with 8-bit weights: "litert", which stores activations as 8
      bits while they run, or "float".
    * ``channels``: "fold" skips integer channels that are constant or unread; "keep" computes all.
    """

    dynamic_range: str = option(
        LITERT,
        Option(
            flag="--dynamic-range",
            help="Run float operators with 8-bit weights as LiteRT, which stores activations as 8 "
            "bits while they run, or in float.",
            group=HelpGroup.MODEL,
            choices=DYNAMIC_RANGES,
        ),
    )
    channels: str = option(
        FOLD,
        Option(
            flag="--channels",
            help="Skip integer channels that are constant or that no operator reads (fold), or "
            "compute all (keep).",
            group=HelpGroup.MODEL,
            choices=CHANNELS,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class RoundingOption(OptionGroup):
    """``rounding``: how integer kernels round; "auto": as the model's reference runtime."""

    rounding: str = option(
        AUTO,
        Option(
            flag="--rounding",
            help="Round in integer kernels as LiteRT's reference kernels (tflite), once (single), "
            "or "
            "as onnxruntime (float); auto is float for .onnx files, else tflite.",
            group=HelpGroup.MODEL,
            choices=(AUTO, *ROUNDINGS),
        ),
    )
