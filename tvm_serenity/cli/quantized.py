"""Options of ``serenity compile`` for quantised models."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tvm_serenity.cli.models import ModelSource
from tvm_serenity.frontends import format_at
from tvm_serenity.quantize.choices import AUTO, LITERT, OFF, check_quantized, check_rounding

if TYPE_CHECKING:
    import tvm

    from tvm_serenity.relax.pipeline import Prepared

Quantized = Annotated[
    str,
    typer.Option(
        "--quantized",
        metavar="auto|off",
        help="Quantised models: auto runs integer kernels, off float ones as TVM imports them.",
    ),
]
Rounding = Annotated[
    str,
    typer.Option(
        metavar="auto|tflite|single|float",
        help="How integer kernels round: tflite as LiteRT's reference kernels, single once, "
        "float as onnxruntime; auto is float for .onnx files, else tflite.",
    ),
]


DynamicRange = Annotated[
    str,
    typer.Option(
        "--dynamic-range",
        metavar="litert|float",
        help="Float operators with 8-bit weights: as LiteRT, which stores activations as 8 bits "
        "while they run, or in float.",
    ),
]


Channels = Annotated[
    str,
    typer.Option(
        "--channels",
        metavar="fold|keep",
        help="fold: channels of integers that are constant, or that nothing reads, are not "
        "computed; keep: all are.",
    ),
]


def opened_for(
    opened: ModelSource,
    module: "tvm.IRModule",
    quantized: str,
    rounding: str,
    dynamic_range: str = LITERT,
) -> tuple[Any, str]:
    """Return the module whose kernels are made, and how its integers round.

    ``module`` is what was opened, in float: itself where integers are not read from the file.
    """
    from tvm_serenity.relax.attributes import DYNAMIC_RANGE
    from tvm_serenity.relax.quantize import is_quantised

    check_quantized(quantized, "--quantized ")
    check_rounding(rounding)
    form = format_at(opened.spec)
    if rounding == AUTO:
        rounding = "tflite" if form is None else form.rounding
    integers = is_quantised(module) or DYNAMIC_RANGE in (module["main"].attrs or {})
    read = quantized != OFF and form is not None and form.reads_integers and integers
    return opened.module(rounding, dynamic_range) if read else module, rounding


def said_of_channels(found: Mapping[str, Any]) -> str:
    """Return in words what ``FoldedChannels.json`` says; nothing where all are computed."""
    if not found["left_out"]:
        return ""
    tensors = len(found["tensors"])
    return (
        f"{found['left_out']:,} of {found['of']:,}, in {tensors} tensors, are constant or not "
        "read: not computed"
    )


def quantised_json(module: "tvm.IRModule", made: "Prepared") -> dict[str, Any]:
    """Return what JSON says of integer kernels; nothing where ``module`` had no use for them."""
    from tvm_serenity.relax.quantize import is_quantised
    from tvm_serenity.runtime.weights import weight_bytes

    if made.steps.quantized == OFF or not is_quantised(module):
        return {}
    said = {
        "rounding": made.steps.rounding,
        "kept_float": list(made.kept_float),
        "weight_bytes": weight_bytes(made.plain),
        "channels": made.folded.json(),
    }
    return {"quantized": said}
