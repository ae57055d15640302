"""Quantised models as input of the kernels of this machine."""

from typing import TYPE_CHECKING, Any

from tvm_serenity.commands.models import ModelSource
from tvm_serenity.frontends import format_at
from tvm_serenity.quantize.choices import AUTO, LITERT, OFF, check_quantized, check_rounding

if TYPE_CHECKING:
    import tvm

    from tvm_serenity.relax.pipeline import Prepared


def opened_for(
    opened: ModelSource,
    module: "tvm.IRModule",
    quantized: str,
    rounding: str,
    dynamic_range: str = LITERT,
) -> tuple[Any, str]:
    """Return the module that is compiled, and the rounding of its integers.

    ``module``: the model read in float; it is returned unchanged if the integers of the file
    are not used.
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


def quantised_json(module: "tvm.IRModule", made: "Prepared") -> dict[str, Any]:
    """Return the JSON key ``quantized``; {} if ``module`` has no integer kernels."""
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
