"""TRANSPOSE_CONV: the layout that TVM compiles, the output's own size, and its activation.

TVM's importer asks for a layout that TVM cannot lower, derives the size of the result from the
filter instead of the operator's first input, and drops the activation.
"""

from typing import Any

import numpy as np
import tflite
from tvm import relax


def convert_transpose_conv(converter: Any, op: Any) -> Any:
    """Return the transposed convolution, in float between transposes to NCHW and back."""
    tensors = converter.get_input_tensors(op)
    (result,) = converter.get_output_tensors(op)
    weights, source = tensors[1], tensors[2]
    options = tflite.TransposeConvOptions()
    options.Init(op.BuiltinOptions().Bytes, op.BuiltinOptions().Pos)
    shape, made = ([int(e) for e in converter.get_tensor_shape(t)] for t in (source, result))
    kernel = [int(e) for e in converter.get_tensor_shape(weights)][1:3]
    strides = [int(options.StrideH()), int(options.StrideW())]
    same = options.Padding() == tflite.Padding.SAME
    before, after, more = [], [], []
    for i in (0, 1):
        reach = (-(-made[i + 1] // strides[i]) - 1) * strides[i] + kernel[i]
        before.append(max(reach - made[i + 1], 0) // 2 if same else 0)
        rest = (shape[i + 1] - 1) * strides[i] + kernel[i] - before[i] - made[i + 1]
        after.append(max(rest, 0))
        more.append(max(-rest, 0))
    data = converter.get_tensor_expr(source)
    data = data if source.qnn_params is None else converter.dequantize(data, source)
    value = relax.op.nn.conv2d_transpose(
        relax.op.permute_dims(data, [0, 3, 1, 2]),
        _filters(converter, weights),
        strides=strides,
        padding=[*before, *after],
        output_padding=more,
        data_layout="NCHW",
        kernel_layout="IOHW",
    )
    value = relax.op.permute_dims(value, [0, 2, 3, 1])
    if len(tensors) == 4 and tensors[3].tensor_idx != -1:
        value = relax.op.add(value, _real(converter, tensors[3]))
    value = converter.convert_fused_activation_function(value, options.FusedActivationFunction())
    return value if result.qnn_params is None else converter.quantize(value, result)


def _filters(converter: Any, weights: Any) -> Any:
    """The weights, from (output channels, height, width, input channels) to IOHW."""
    return relax.op.permute_dims(_real(converter, weights), [3, 0, 1, 2])


def _real(converter: Any, tensor: Any) -> Any:
    expr = converter.get_tensor_expr(tensor)
    if tensor.qnn_params is None:
        return expr
    zeros = np.asarray(tensor.qnn_params["zero_point"].value.numpy())
    return relax.op.dequantize(
        expr, tensor.qnn_params["scale"], relax.const(zeros), tensor.qnn_params["axis"]
    )
