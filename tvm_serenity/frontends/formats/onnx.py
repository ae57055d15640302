"""``.onnx`` files."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_serenity.frontends.formats.record import Format

if TYPE_CHECKING:
    from tvm_serenity.frontends.onnx_file import OnnxFile
    from tvm_serenity.frontends.relax._converter import Integers


def _read(path: Path, data: bytes, dims: Mapping[str, int]) -> "OnnxFile":
    from tvm_serenity.frontends import onnx_file

    return onnx_file.read(path, data, dims)


def _to_relax(model: "OnnxFile", dims: Mapping[str, int], _integers: "Integers") -> Any:
    from tvm_serenity.frontends.relax import from_onnx

    return from_onnx.convert(model, dims or model.dims)


FORMAT = Format(
    name="onnx",
    title="ONNX",
    suffixes=(".onnx",),
    read=_read,
    to_relax=_to_relax,
    runtime="onnxruntime",
    rounding="float",
    after_order=(
        "onnxruntime chooses an order itself: by default it ignores that of this file; write "
        "it with --for onnxruntime"
    ),
)
