"""Options of ``serenity compile`` for quantised models."""

from typing import Annotated, Any

import typer

from tvm_serenity.cli.models import Source
from tvm_serenity.errors import InputError

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


def integer_module(
    opened: Source, module: Any, quantized: str, rounding: str
) -> tuple[Any, dict[str, Any]]:
    """Return the module with integer kernels, and what JSON says of that.

    ``module`` is what was opened, in float: itself and nothing is returned where it is not
    quantised or ``quantized`` is "off".
    """
    from tvm_serenity.relax.pipeline import QUANTIZED
    from tvm_serenity.relax.quantize import (
        check_rounding,
        is_quantised,
        kept_float,
        quantized_module,
    )
    from tvm_serenity.runtime.weights import weight_bytes

    if quantized not in QUANTIZED:
        raise InputError(f"--quantized {quantized}: there are {', '.join(QUANTIZED)}")
    if quantized == "off" or not is_quantised(module):
        return module, {}
    if rounding == "auto":
        rounding = "float" if opened.spec.lower().endswith(".onnx") else "tflite"
    check_rounding(rounding)
    if opened.spec.lower().endswith(".tflite"):  # read anew: operators as integers
        module = opened.module(rounding)
    made = quantized_module(module, rounding)
    kept = list(kept_float(made))
    said = {"rounding": rounding, "kept_float": kept, "weight_bytes": weight_bytes(made)}
    return made, {"quantized": said}
