"""``.onnx`` files to Relax through TVM's importer."""

from collections.abc import Mapping
from typing import Any

import tvm

from tvm_serenity.frontends.onnx_file import OnnxFile
from tvm_serenity.frontends.relax._importer import run_importer


def convert(model: OnnxFile, dims: Mapping[str, int]) -> tvm.IRModule:
    """Return ``model`` as a Relax module with the named dimensions set to ``dims``."""
    from tvm.relax.frontend.onnx import from_onnx

    stored = {initializer.name for initializer in model.model.graph.initializer}
    shapes = {
        value.name: [_size(dim, dims) for dim in value.type.tensor_type.shape.dim]
        for value in model.model.graph.input
        if value.name not in stored
    }
    return run_importer(lambda: from_onnx(model.model, shapes, keep_params_in_input=False))


def _size(dim: Any, dims: Mapping[str, int]) -> int:
    return dims[dim.dim_param] if dim.dim_param else int(dim.dim_value)
