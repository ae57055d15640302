"""``.onnx`` files to Relax through TVM's importer."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import tvm

from tvm_serenity.frontends._onnx_fold import standard_version
from tvm_serenity.frontends._onnx_prepare import prepared
from tvm_serenity.frontends.onnx_file import OnnxFile, check_converted, check_domains, check_types
from tvm_serenity.frontends.relax._importer import run_importer
from tvm_serenity.frontends.relax._legal import with_kernels

if TYPE_CHECKING:
    import onnx


def convert(model: OnnxFile, dims: Mapping[str, int]) -> tvm.IRModule:
    """Return ``model`` as a Relax module with the named dimensions set to ``dims``."""
    whole, types = prepared(model.model, dims, model.path.parent)
    check_domains(whole.graph)
    check_converted(whole.graph)
    check_types(whole.graph, types)
    return with_kernels(run_importer(lambda: _imported(whole, types)))


def _imported(model: "onnx.ModelProto", types: Mapping[str, Any]) -> tvm.IRModule:
    from tvm_serenity.frontends.relax._onnx_importer import Importer

    stored = {initializer.name for initializer in model.graph.initializer}
    shapes = {
        value.name: [int(dim.dim_value) for dim in value.type.tensor_type.shape.dim]
        for value in model.graph.input
        if value.name not in stored
    }
    importer = Importer(shapes, "float32")
    made = importer.from_onnx(model.graph, standard_version(model))
    importer.check(model.graph, types)
    return made
