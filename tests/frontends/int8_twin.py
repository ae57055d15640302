"""A uint8 model as int8, which TensorFlow Lite Micro runs: same graph, same shapes, same bytes.

Activations keep their scale, the zero point moves by 128. Weights are quantised again, symmetric
as int8 kernels need them, and biases with them; so outputs are near those of the uint8 model, not
equal.
"""

from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema


def int8_twin(data: bytes) -> bytes:
    """Return the int8 twin of the uint8 ``.tflite`` model in ``data``."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
    graph = model.subgraphs[0]
    scales: dict[int, float] = {}
    for index, tensor in enumerate(graph.tensors):
        if tensor.type != schema.TensorType.UINT8:
            continue
        tensor.type = schema.TensorType.INT8
        stored = model.buffers[tensor.buffer].data
        if stored is None or len(stored) == 0:
            tensor.quantization.zeroPoint = [int(tensor.quantization.zeroPoint[0]) - 128]
        else:
            scales[index] = _requantised(model.buffers[tensor.buffer], tensor.quantization)
    for op in graph.operators:
        if len(op.inputs) == 3 and op.inputs[1] in scales:
            _bias(model, graph.tensors, op, scales[op.inputs[1]])
    builder = flatbuffers.Builder(len(data))
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _requantised(buffer: Any, quantization: Any) -> float:
    """Quantise stored weights again with zero point 0; return their new scale."""
    scale, zero = float(quantization.scale[0]), int(quantization.zeroPoint[0])
    real = (np.asarray(buffer.data, np.uint8).astype(np.float64) - zero) * scale
    new = max(float(np.abs(real).max()), 1e-9) / 127
    buffer.data = np.round(real / new).astype(np.int8).view(np.uint8)
    quantization.scale, quantization.zeroPoint = [new], [0]
    return float(np.float32(new))


def _bias(model: Any, tensors: Any, op: Any, weight_scale: float) -> None:
    tensor = tensors[op.inputs[2]]
    buffer = model.buffers[tensor.buffer]
    real = np.asarray(buffer.data, np.uint8).view(np.int32) * float(tensor.quantization.scale[0])
    new = float(tensors[op.inputs[0]].quantization.scale[0]) * weight_scale
    buffer.data = np.round(real / new).astype(np.int32).view(np.uint8)
    tensor.quantization.scale, tensor.quantization.zeroPoint = [new], [0]
