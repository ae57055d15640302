"""The check of scales in quantised ONNX models, before any use."""

from typing import TYPE_CHECKING

import numpy as np

from tvm_serenity.errors import InputError

if TYPE_CHECKING:
    import onnx

_STEPS = ("QuantizeLinear", "DequantizeLinear")


def check_scales(graph: "onnx.GraphProto") -> None:
    """Raise :class:`InputError` for a stored scale that is infinite, NaN, 0 or below."""
    from onnx import numpy_helper

    held = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        scale = held.get(node.input[1]) if node.op_type in _STEPS else None
        if scale is None:
            continue
        array = numpy_helper.to_array(scale).astype(np.float64).reshape(-1)
        wrong = array[~(np.isfinite(array) & (array > 0))]
        if wrong.size:
            raise InputError(
                f"operator {node.op_type} (output {node.output[0]!r}): tensor "
                f"{scale.name!r}: scale {float(wrong[0]):g}; scales must be finite and "
                "above 0: quantise the model again without infinite values (in an "
                "attention mask use -1e4)"
            )
