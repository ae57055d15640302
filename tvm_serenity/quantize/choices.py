"""The choices for quantized models, shared by passes, pipeline and command line."""

from tvm_serenity.errors import InputError
from tvm_serenity.quantize.fixed import ROUNDINGS

AUTO, OFF = "auto", "off"
QUANTIZED = (AUTO, OFF)
"""Integer kernels if the model has integers, or float ones as imported."""
LITERT, FLOAT = "litert", "float"
DYNAMIC_RANGES = (LITERT, FLOAT)
"""Float operators with 8-bit weights: computed as LiteRT does, or in float."""

FOLD, KEEP = "fold", "keep"
CHANNELS = (FOLD, KEEP)
"""Constant and unread channels are skipped, or every channel is computed."""


def check_quantized(value: str, option: str = "quantized=") -> None:
    """Raise :class:`InputError`, which names ``option``, unless ``value`` is a choice."""
    if value not in QUANTIZED:
        raise InputError(f"{option}{value!r}: there are {', '.join(QUANTIZED)}")


def check_channels(value: str, option: str = "channels=") -> None:
    """Raise :class:`InputError` unless ``value`` is a choice for channels."""
    if value not in CHANNELS:
        raise InputError(f"{option}{value!r}: there are {', '.join(CHANNELS)}")


def check_rounding(rounding: str) -> None:
    """Raise :class:`InputError` unless ``rounding`` is a known rounding, or "auto"."""
    if rounding not in (AUTO, *ROUNDINGS):
        raise InputError(f"rounding={rounding!r}: there are {', '.join((AUTO, *ROUNDINGS))}")


def check_dynamic_range(value: str, option: str = "dynamic_range=") -> None:
    """Raise :class:`InputError` unless ``value`` is a choice for dynamic-range operators."""
    if value not in DYNAMIC_RANGES:
        raise InputError(f"{option}{value!r}: there are {', '.join(DYNAMIC_RANGES)}")
