"""TVM's importer of ONNX graphs with its wrong and missing conversions replaced."""

from typing import Any

from tvm import relax
from tvm.relax.frontend.onnx.onnx_frontend import ONNXGraphImporter, _get_convert_map

from tvm_serenity.errors import UnsupportedError


class Importer(ONNXGraphImporter):  # type: ignore[misc]
    """Converts one graph; ``shape_dict`` are the extents of its inputs."""

    def _check_for_unsupported_ops(self, graph: Any) -> None:
        known = {*_get_convert_map(), "Constant", "If"}
        for node in graph.node:
            if node.op_type not in known:
                made = next(iter(node.output), "")
                raise UnsupportedError(
                    f"TVM cannot import operator {node.op_type} (output {made!r}): it has no "
                    "conversion"
                )

    def _convert_operator(self, op_name: str, inputs: Any, attrs: Any, opset: int) -> relax.Expr:
        return super()._convert_operator(op_name, inputs, attrs, opset)
