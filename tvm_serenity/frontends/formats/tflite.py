"""``.tflite`` files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_serenity.frontends.formats.record import Format

if TYPE_CHECKING:
    from tvm_serenity.frontends.relax._converter import Integers
    from tvm_serenity.frontends.tflite_causal import CausalFile
    from tvm_serenity.frontends.tflite_file import TfliteFile
    from tvm_serenity.frontends.tflite_interface import StoredInterface
    from tvm_serenity.rows.network import Network


def _read(
    path: Path, data: bytes, dims: Mapping[str, int], signature: str | None = None
) -> "TfliteFile":
    from tvm_serenity.frontends import tflite_file

    return tflite_file.read(path, data, dims, signature)


def _to_relax(model: "TfliteFile", _dims: Mapping[str, int], integers: "Integers") -> Any:
    from tvm_serenity.frontends.relax import from_tflite

    return from_tflite.convert(model, integers)


def _rows(model: "TfliteFile") -> "Network":
    from tvm_serenity.frontends.tflite_rows import network_of

    return network_of(model)


def _interface(data: bytes, name: str) -> "StoredInterface":
    from tvm_serenity.frontends.tflite_interface import stored_interface

    return stored_interface(data, name)


def _causal(data: bytes, name: str) -> "CausalFile":
    from tvm_serenity.frontends.tflite_causal import causal

    return causal(data, name)


def _planned(model: "TfliteFile", order: Sequence[int], plan: bytes) -> bytes:
    return model.planned(order, plan)


def _labels(model: "TfliteFile") -> list[tuple[str, ...]]:
    from tvm_serenity.frontends.tflite_labels import axis_labels

    return axis_labels(model.data, str(model.path))


FORMAT = Format(
    name="tflite",
    title="TensorFlow Lite",
    suffixes=(".tflite",),
    magic=(4, b"TFL3"),
    read=_read,
    read_signature=_read,
    to_relax=_to_relax,
    runtime="litert",
    reads_integers=True,
    after_order="LiteRT and TFLM run operators in the order of the file",
    rows=_rows,
    interface=_interface,
    causal=_causal,
    offline_plan=_planned,
    labels=_labels,
)
