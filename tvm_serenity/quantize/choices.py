"""What may be chosen for quantised models, wherever it is asked: passes, pipeline, command line."""

from tvm_serenity.errors import InputError
from tvm_serenity.quantize.fixed import ROUNDINGS

AUTO, OFF = "auto", "off"
QUANTIZED = (AUTO, OFF)
"""Integer kernels wherever the model has integers, or float ones as imported."""
LITERT, FLOAT = "litert", "float"
DYNAMIC_RANGES = (LITERT, FLOAT)
"""How float operators with 8-bit weights are read: as LiteRT computes them, or all in float."""

FOLD, KEEP = "fold", "keep"
CHANNELS = (FOLD, KEEP)
"""Channels that are constant, or not read, are not computed; or every channel is."""


def check_quantized(value: str, option: str = "quantized=") -> None:
    """Raise :class:`InputError`, which names ``option``, unless there is such a choice."""
    if value not in QUANTIZED:
        raise InputError(f"{option}{value!r}: there are {', '.join(QUANTIZED)}")


def check_channels(value: str, option: str = "channels=") -> None:
    """Raise :class:`InputError` unless channels can be treated so."""
    if value not in CHANNELS:
        raise InputError(f"{option}{value!r}: there are {', '.join(CHANNELS)}")


def check_rounding(rounding: str) -> None:
    """Raise :class:`InputError` unless there is a rounding of that name, or "auto"."""
    if rounding not in (AUTO, *ROUNDINGS):
        raise InputError(f"rounding={rounding!r}: there are {', '.join((AUTO, *ROUNDINGS))}")


def check_dynamic_range(value: str, option: str = "dynamic_range=") -> None:
    """Raise :class:`InputError` unless operators of dynamic range can be read so."""
    if value not in DYNAMIC_RANGES:
        raise InputError(f"{option}{value!r}: there are {', '.join(DYNAMIC_RANGES)}")
