"""Row streaming: operators are split into bands of rows, ordered and placed (``docs/rows.md``)."""

from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.network import Feature, Layer, Network
from tvm_serenity.rows.split import Banded, heights_of, split
from tvm_serenity.rows.stream import Streaming, stream

__all__ = [
    "Banded",
    "Feature",
    "Layer",
    "Limits",
    "Network",
    "Streaming",
    "heights_of",
    "split",
    "stream",
]
