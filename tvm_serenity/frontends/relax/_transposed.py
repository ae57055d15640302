"""TRANSPOSE_CONV of floats: the layout that TVM compiles, the output's size, its activation.

TVM's importer asks for a layout that TVM cannot lower, derives the size of the result from the
filter instead of the operator's first input, and drops the activation.
"""

from typing import Any

import tflite
from tvm import relax

from tvm_serenity.operators.transpose_conv import cut_before


def convert_transpose_conv(converter: Any, op: Any) -> Any:
    """Return the transposed convolution, between transposes to NCHW and back."""
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
        before.append(cut_before(made[i + 1], kernel[i], strides[i], same))
        rest = (shape[i + 1] - 1) * strides[i] + kernel[i] - before[i] - made[i + 1]
        after.append(max(rest, 0))
        more.append(max(-rest, 0))
    data = converter.get_tensor_expr(source)
    value = relax.op.nn.conv2d_transpose(
        relax.op.permute_dims(data, [0, 3, 1, 2]),
        relax.op.permute_dims(converter.get_tensor_expr(weights), [3, 0, 1, 2]),
        strides=strides,
        padding=[*before, *after],
        output_padding=more,
        data_layout="NCHW",
        kernel_layout="IOHW",
    )
    value = relax.op.permute_dims(value, [0, 2, 3, 1])
    if len(tensors) == 4 and tensors[3].tensor_idx != -1:
        value = relax.op.add(value, converter.get_tensor_expr(tensors[3]))
    return converter.convert_fused_activation_function(value, options.FusedActivationFunction())
