"""4-bit quantised weights, converted to 8-bit weights with the same values.

DequantizeLinear has the same meaning for both; TVM has no 4-bit constants. Constants with other
readers stay.
"""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import onnx

_WIDER = {"INT4": np.int8, "UINT4": np.uint8}


def with_bytes(model: "onnx.ModelProto") -> None:
    """Widen the 4-bit constants of ``model`` that only DequantizeLinear reads, in place."""
    import onnx

    types = {onnx.TensorProto.DataType.Value(name): dtype for name, dtype in _WIDER.items()}
    graph = model.graph
    if not any(held.data_type in types for held in graph.initializer):
        return
    others = {name for node in graph.node if _is_other(node) for name in node.input}
    others.update(value.name for value in graph.output)
    bound = {name for node in graph.node if not _is_other(node) for name in node.input[::2]}
    for held in graph.initializer:
        if held.data_type in types and held.name in bound and held.name not in others:
            value = onnx.numpy_helper.to_array(held).astype(types[held.data_type])
            held.CopyFrom(onnx.numpy_helper.from_array(value, held.name))


def _is_other(node: "onnx.NodeProto") -> bool:
    return bool(node.op_type != "DequantizeLinear" or node.domain)
