"""Options on the model that is read, and on how its numbers are computed."""

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

IN_C = "a C function is called from C"


def dims_of(items: Sequence[str]) -> dict[str, int]:
    """Return sizes of named dimensions, each written as NAME=SIZE."""
    sizes = {}
    for item in items:
        name, _, size = item.rpartition("=")
        if not name or not size.isdigit():
            raise InputError(f"--dim {item!r}: write NAME=SIZE, like batch=1")
        sizes[name] = int(size)
    return sizes


def workspaces_of(items: Sequence[str]) -> dict[str, int]:
    """Return the workspace in bytes of operators that the user computes, each as NAME=SIZE."""
    found: dict[str, int] = {}
    for item in items:
        name, _, size = item.rpartition("=")
        if not name:
            raise InputError(f"--opaque {item!r}: write NAME=SIZE, like ethos-u=64K")
        if name in found:
            raise InputError(f"--opaque {name}: given twice")
        found[name] = size_bytes(size)
    return found


@dataclass(frozen=True, kw_only=True)
class ReadOptions(OptionGroup):
    """What is read of a file.

    * ``dims``: sizes of dimensions of its inputs, by their names or by ``INPUT:AXIS``.
      ``signature``: its entry point, where it has several.
    """

    dims: Mapping[str, int] = option(
        {},
        Option(
            flag="--dim",
            help="Size of a dimension by its name, or by INPUT:AXIS.",
            group=HelpGroup.MODEL,
            metavar="NAME=SIZE",
            read=dims_of,
        ),
    )
    signature: str | None = option(
        None,
        Option(
            flag="--signature",
            help="Which entry point is read (.tflite).",
            group=HelpGroup.MODEL,
            metavar="NAME",
        ),
    )


@dataclass(frozen=True, kw_only=True)
class OpaqueOptions(OptionGroup):
    """``opaque``: operators that the user's code computes, each with its workspace in bytes."""

    opaque: Mapping[str, int] = option(
        {},
        Option(
            flag="--opaque",
            help="Plan around operator NAME, which you compute.",
            group=HelpGroup.MODEL,
            metavar="NAME=SIZE",
            read=workspaces_of,
            conflicts=(Conflict("codegen", IN_C),),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Quantized(OptionGroup):
    """``quantized``: "auto", integers wherever the model has them; "off", float."""

    quantized: str = option(
        AUTO,
        Option(
            flag="--quantized",
            help="Quantised models: auto runs integer kernels, off float ones as TVM imports them.",
            group=HelpGroup.MODEL,
            choices=QUANTIZED,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class IntegerOptions(Quantized):
    """How the numbers of a quantised model are computed.

    * ``dynamic_range``: float operators with 8-bit weights: "litert", which stores activations as 8
      bits while they run, or "float".
    * ``channels``: "fold" computes no channel of integers that is constant or not read, "keep" all.
    """

    dynamic_range: str = option(
        LITERT,
        Option(
            flag="--dynamic-range",
            help="Float operators with 8-bit weights: as LiteRT, which stores activations as 8 "
            "bits while they run, or in float.",
            group=HelpGroup.MODEL,
            choices=DYNAMIC_RANGES,
        ),
    )
    channels: str = option(
        FOLD,
        Option(
            flag="--channels",
            help="fold: channels of integers that are constant, or that nothing reads, are not "
            "computed; keep: all are.",
            group=HelpGroup.MODEL,
            choices=CHANNELS,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class RoundingOption(OptionGroup):
    """``rounding``: how integer kernels round; "auto": as the model's own runtime."""

    rounding: str = option(
        AUTO,
        Option(
            flag="--rounding",
            help="How integer kernels round: tflite as LiteRT's reference kernels, single once, "
            "float as onnxruntime; auto is float for .onnx files, else tflite.",
            group=HelpGroup.MODEL,
            choices=(AUTO, *ROUNDINGS),
        ),
    )
