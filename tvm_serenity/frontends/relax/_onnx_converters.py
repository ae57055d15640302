"""Convert the ONNX operators that TVM's importer converts wrongly, and refuse unsupported forms.

A converter takes the block builder, the inputs, the attributes and the opset, and returns the Relax
value. ``refusal`` returns why a form is not converted.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends.relax._onnx_layer_norm import layer_norm
from tvm_serenity.frontends.relax._onnx_recurrent import recurrent
from tvm_serenity.frontends.relax._onnx_values import Attributes, constant, dtype_of, shape_of
from tvm_serenity.frontends.relax._pools import AxisWindow, average_pool, max_pool

Converter = Callable[[Any, Sequence[Any], Attributes, int], Any]


_DATA_SIZED = frozenset(("AllClassNMS", "NonMaxSuppression", "NonZero", "Unique"))
"""Operators whose number of results depends on the values of their inputs."""


def refusal(name: str, inputs: Sequence[Any], attributes: Attributes, opset: int) -> str:
    """Return why this form of an operator is not supported, or ""."""
    if name in _DATA_SIZED:
        return "its number of results depends on the values of its inputs"
    if name.startswith("Reduce") and 0 in shape_of(inputs[0]):
        return "it reduces a tensor without elements"
    if name == "Pow" and dtype_of(inputs[0]).startswith(("int", "uint")) and not _power(inputs):
        return "it raises integers to a power that is not a constant from 1 to 8"
    if name == "BatchNormalization" and (
        attributes.get("training_mode", 0)
        or attributes.get("tvm_custom", {}).get("num_outputs", 1) > 1
    ):
        return "it is in training mode"
    if name == "BitShift" and dtype_of(inputs[0]).startswith("int"):
        return "it shifts signed integers"
    if name == "Dropout" and _may_be_true(inputs[2] if len(inputs) > 2 else None):
        return "it is in training mode, so its result is random"
    if name == "RMSNormalization" and attributes.get("axis", -1) in (0, -inputs[0].ty.ndim):
        return "it normalises over all axes"
    if name == "SpaceToDepth" and attributes.get("mode", b"DCR") != b"DCR":
        return "its mode is CRD"
    if name == "Split" and 0 in _numbers(inputs, 1):
        return "it splits off parts without elements"
    if name == "RoiAlign" and attributes.get("mode", b"avg") == b"max":
        return "its mode is max"
    if name == "Mod" and not attributes.get("fmod", 0) and dtype_of(inputs[0]).startswith("float"):
        return "it takes the remainder of floats without fmod"
    return ""


def _numbers(inputs: Sequence[Any], index: int) -> list[Any]:
    """Return the values of a constant input; an empty list if it is not constant."""
    value = constant(inputs, index)
    return [] if value is None else value.reshape(-1).tolist()


def _may_be_true(value: relax.Expr | None) -> bool:
    if value is None:
        return False
    return not isinstance(value, tvm.ir.GenericConst) or bool(value.value.numpy().any())


def _padding(attributes: Attributes, extents: Sequence[int], spans: Sequence[int]) -> list[int]:
    """Return the padding of ``pads`` or ``auto_pad``, starts before ends."""
    rank = len(extents)
    mode = attributes.get("auto_pad", b"NOTSET").decode()
    if mode == "NOTSET":
        return list(attributes.get("pads", [0] * 2 * rank))
    if mode == "VALID":
        return [0] * 2 * rank
    begins, ends = [], []
    for extent, span, stride in zip(
        extents, spans, attributes.get("strides", [1] * rank), strict=True
    ):
        total = max(0, (-(-extent // stride) - 1) * stride + span - extent)
        less, more = total // 2, total - total // 2
        begins.append(more if mode == "SAME_LOWER" else less)
        ends.append(less if mode == "SAME_LOWER" else more)
    return [*begins, *ends]


def _pool(maximum: bool) -> Converter:
    def convert(
        bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: Attributes, opset: int
    ) -> Any:
        x = inputs[0]
        extents, size = shape_of(x)[2:], list(attributes["kernel_shape"])
        rank = len(size)
        if rank > 3:
            raise UnsupportedError(f"its pooling window has {rank} axes; at most 3 are supported")
        strides = attributes.get("strides", [1] * rank)
        dilations = attributes.get("dilations", [1] * rank)
        spans = [d * (k - 1) + 1 for d, k in zip(dilations, size, strict=True)]
        pads = _padding(attributes, extents, spans)
        ceil = bool(attributes.get("ceil_mode", 0))
        windows = [
            AxisWindow(*each, ceil=ceil)
            for each in zip(size, strides, pads[:rank], pads[rank:], dilations, strict=True)
        ]
        if maximum:
            if attributes["tvm_custom"]["num_outputs"] > 1:
                raise UnsupportedError(
                    "the indices of its maxima (its second output) are read, which is "
                    "not supported; remove their readers"
                )
            return bb.emit(max_pool(x, extents, windows))
        counted = bool(attributes.get("count_include_pad", 0))
        return bb.emit(average_pool(x, extents, windows, counted))

    return convert


def _dropout(
    bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: Attributes, opset: int
) -> Any:
    """Return the input, and a mask of ones."""
    x = inputs[0]
    if attributes["tvm_custom"]["num_outputs"] == 1:
        return x
    dtype = "bool" if opset >= 12 else dtype_of(x)
    return relax.Tuple([x, relax.const(np.ones(shape_of(x), dtype), dtype)])


def _power(inputs: Sequence[Any]) -> int:
    """Return the exponent if it is a constant from 1 to 8, otherwise 0."""
    if not isinstance(inputs[1], tvm.ir.GenericConst):
        return 0
    values = inputs[1].value.numpy()
    if values.size != 1 or values.ndim > inputs[0].ty.ndim:
        return 0
    number = float(values.reshape(()))
    return int(number) if number in range(1, 9) else 0


def _pow(bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: Attributes, opset: int) -> Any:
    """Return a power: of integers by multiplication, of floats by the function."""
    x, exponent = inputs
    if dtype_of(x).startswith(("int", "uint")):
        made = x
        for _ in range(_power(inputs) - 1):
            made = bb.emit(relax.op.multiply(made, x))
        return made
    if dtype_of(exponent) != dtype_of(x):
        exponent = bb.emit(relax.op.astype(exponent, dtype_of(x)))
    return bb.emit(relax.op.power(x, exponent))


def _is_infinite(
    bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: Attributes, opset: int
) -> Any:
    x, dtype = inputs[0], dtype_of(inputs[0])
    found = [
        bb.emit(relax.op.equal(x, relax.const(value, dtype)))
        for value, name in ((np.inf, "detect_positive"), (-np.inf, "detect_negative"))
        if attributes.get(name, 1)
    ]
    if not found:
        return relax.const(np.zeros(shape_of(x), "bool"), "bool")
    return found[0] if len(found) == 1 else bb.emit(relax.op.logical_or(*found))


def _bit_shift(
    bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: Attributes, opset: int
) -> Any:
    """Return a shift; shifts by the width or more give 0."""
    x, by = inputs
    left = attributes["direction"] == b"LEFT"
    shifted = (relax.op.left_shift if left else relax.op.right_shift)(x, by)
    dtype = dtype_of(x)
    width = relax.const(np.dtype(dtype).itemsize * 8, dtype)
    zero = relax.const(0, dtype)
    return bb.emit(relax.op.where(relax.op.less(by, width), shifted, zero))


def _local_response(
    bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: Attributes, opset: int
) -> Any:
    """Return ``x / (bias + alpha / size * sum of squares)^beta`` over ``size`` channels."""
    x, size = inputs[0], int(attributes["size"])
    shape, dtype = shape_of(x), dtype_of(x)
    squares = bb.emit(relax.op.multiply(x, x))
    flat = bb.emit(relax.op.reshape(squares, [shape[0], 1, shape[1], _product(shape[2:])]))
    windows = [AxisWindow(size, 1, (size - 1) // 2, size // 2), AxisWindow(1, 1, 0, 0)]
    mean = bb.emit(average_pool(flat, [shape[1], shape_of(flat)[3]], windows, with_padding=True))
    mean = bb.emit(relax.op.reshape(mean, shape))
    alpha, bias, beta = (
        relax.const(attributes.get(name, default), dtype)
        for name, default in (("alpha", 1e-4), ("bias", 1.0), ("beta", 0.75))
    )
    scale = bb.emit(relax.op.add(bias, relax.op.multiply(alpha, mean)))
    return bb.emit(relax.op.divide(x, relax.op.power(scale, beta)))


def _product(extents: Sequence[int]) -> int:
    return int(np.prod(extents))


def _transposed_padding(attributes: Attributes, shape: Sequence[int], kernel: Sequence[int]) -> Any:
    """Return the padding for ``output_shape``, by the standard's formula."""
    rank = len(kernel)
    strides = attributes.get("strides", [1] * rank)
    dilations = attributes.get("dilations", [1] * rank)
    extra = attributes.get("output_padding", [0] * rank)
    begins, ends = [], []
    for axis, wanted in enumerate(list(attributes["output_shape"])[-rank:]):
        span = (kernel[axis] - 1) * dilations[axis] + 1
        total = strides[axis] * (shape[axis] - 1) + extra[axis] + span - wanted
        if total < 0:
            raise UnsupportedError(
                "output_shape is larger than the convolution's result; state pads instead"
            )
        upper = attributes.get("auto_pad", b"NOTSET") == b"SAME_UPPER"
        begins.append(total // 2 if upper else total - total // 2)
        ends.append(total - total // 2 if upper else total // 2)
    return [*begins, *ends]


def _recurrent(name: str) -> Converter:
    def convert(
        bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: Attributes, opset: int
    ) -> Any:
        made = recurrent(name, bb, inputs, attributes)
        count = attributes["tvm_custom"]["num_outputs"]
        return made if count > 1 else made.fields[0]

    return convert


CONVERTERS: dict[str, Converter] = {
    **{name: _recurrent(name) for name in ("GRU", "LSTM", "RNN")},
    "AveragePool": _pool(maximum=False),
    "BitShift": _bit_shift,
    "Dropout": _dropout,
    "IsInf": _is_infinite,
    "LRN": _local_response,
    "LayerNormalization": layer_norm,
    "MaxPool": _pool(maximum=True),
    "Pow": _pow,
}
"""Converters by operator; TVM converts the others."""


def adjusted(name: str, inputs: Sequence[Any], attributes: Attributes) -> Attributes:
    """Return an operator's attributes with those made explicit that TVM does not read."""
    if name == "ConvTranspose" and "output_shape" in attributes:
        kernel = shape_of(inputs[1])[2:]
        pads = _transposed_padding(attributes, shape_of(inputs[0])[2:], kernel)
        kept = {k: v for k, v in attributes.items() if k not in ("output_shape", "auto_pad")}
        return {**kept, "pads": pads}
    return attributes
