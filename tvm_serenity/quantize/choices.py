"""What may be chosen for quantised models, wherever it is asked: passes, pipeline, command line."""

from tvm_serenity.errors import InputError
from tvm_serenity.quantize.fixed import ROUNDINGS

AUTO, OFF = "auto", "off"
QUANTIZED = (AUTO, OFF)
"""Integer kernels wherever the model has integers, or float ones as imported."""


def check_quantized(value: str, option: str = "quantized=") -> None:
    """Raise :class:`InputError`, which names ``option``, unless there is such a choice."""
    if value not in QUANTIZED:
        raise InputError(f"{option}{value!r}: there are {', '.join(QUANTIZED)}")


def check_rounding(rounding: str) -> None:
    """Raise :class:`InputError` unless there is a rounding of that name, or "auto"."""
    if rounding not in (AUTO, *ROUNDINGS):
        raise InputError(f"rounding={rounding!r}: there are {', '.join((AUTO, *ROUNDINGS))}")
