"""``.onnx`` files to Relax through TVM's importer."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import tvm

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends._onnx_fold import NUMBERS
from tvm_serenity.frontends._onnx_prepare import prepared
from tvm_serenity.frontends.onnx_file import OnnxFile, check_converted, check_domains
from tvm_serenity.frontends.relax._importer import run_importer
from tvm_serenity.frontends.relax._legal import with_kernels

if TYPE_CHECKING:
    import onnx


def convert(model: OnnxFile, dims: Mapping[str, int]) -> tvm.IRModule:
    """Return ``model`` as a Relax module with the named dimensions set to ``dims``."""
    whole, types = prepared(model.model, dims, model.path.parent)
    check_domains(whole.graph)
    check_converted(whole.graph)
    _check_types(whole.graph, types)
    return with_kernels(run_importer(lambda: _imported(whole, types)))


def _imported(model: "onnx.ModelProto", types: Mapping[str, Any]) -> tvm.IRModule:
    from tvm_serenity.frontends.relax._onnx_importer import Importer

    opset = next((e.version for e in model.opset_import if e.domain in ("", "ai.onnx")), 1)
    stored = {initializer.name for initializer in model.graph.initializer}
    shapes = {
        value.name: [int(dim.dim_value) for dim in value.type.tensor_type.shape.dim]
        for value in model.graph.input
        if value.name not in stored
    }
    importer = Importer(shapes, "float32")
    made = importer.from_onnx(model.graph, opset)
    importer.check(model.graph, types)
    return made


def _check_types(graph: "onnx.GraphProto", types: Mapping[str, Any]) -> None:
    """Refuse values of types that numpy lacks: narrow floats and integers of less than 8 bits."""
    made = [name for node in graph.node for name in node.output]
    for name in (*(value.name for value in graph.input), *made):
        kind = types.get(name)
        if kind is None or not kind.HasField("tensor_type"):
            continue
        if kind.tensor_type.elem_type not in (0, *NUMBERS):
            from onnx import TensorProto

            dtype = TensorProto.DataType.Name(kind.tensor_type.elem_type).lower()
            raise UnsupportedError(f"value {name!r} is {dtype}, which has no kernels here")
