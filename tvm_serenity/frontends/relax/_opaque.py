"""Emit calls of placeholder kernels for operators that the user implements.

Firmware replaces these kernels by calls of the user's functions.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from tvm import relax

from tvm_serenity.frontends._flatbuffer import FileBytes, table_at
from tvm_serenity.frontends._flexbuffer import custom_options
from tvm_serenity.frontends.opaque import laid
from tvm_serenity.frontends.relax._converter import Converter, Wrapper
from tvm_serenity.kernels.opaque import Opaque, Passed, stand_in
from tvm_serenity.operators.scene import Shape
from tvm_serenity.relax.calls import Writer, shape_of

if TYPE_CHECKING:
    import tflite


def opaque_call(converter: Converter, op: "tflite.Operator", kind: str, writer: Writer) -> Any:
    """Return the result of an operator: a tensor, or a tuple of several.

    Inputs, constants included, are passed as stored; uninitialised inputs are scratch.
    """
    lent = converter.model.lent.get(op._tab.Pos, {})
    arguments: list[Any] = []
    parameters: dict[str, tuple[Shape, str]] = {}
    inputs = []
    for wrapper in converter.get_input_tensors(op):
        if wrapper.tensor_idx == -1:
            inputs.append(Passed())
        elif wrapper.tensor_idx in lent:
            offset = lent[wrapper.tensor_idx]
            inputs.append(Passed(scratch_offset=offset, size_bytes=_size(converter, wrapper)))
        else:
            value = converter.bb.normalize(converter.get_tensor_expr(wrapper))
            held = (shape_of(value), str(value.ty.dtype.dtype))
            inputs.append(Passed(len(arguments), size_bytes=_bytes(*held)))
            parameters[f"a{len(arguments)}"] = held
            arguments.append(value)
    table = table_at(FileBytes(converter.model.data), op._tab.Pos)
    options = np.frombuffer(custom_options(table), np.uint8).copy()
    if options.size:
        parameters["options"] = (options.shape, "uint8")
        arguments.append(options)
    outputs = []
    for number, wrapper in enumerate(converter.get_output_tensors(op)):
        held = (_shape(wrapper), converter.get_tensor_type_str(wrapper.tensor.Type()))
        parameters[f"made{number}"] = held
        outputs.append(_bytes(*held))
    sizes = [_size(converter, w) for w in converter.get_input_tensors(op) if w.tensor_idx in lent]
    what = Opaque(
        kind,
        tuple(inputs),
        tuple(outputs),
        (len(arguments) - 1, options.size) if options.size else None,
        laid(sizes, list(lent.values()))[1],
        converter.model.opaque[kind],
    )
    kernel = stand_in(what, parameters)
    if len(outputs) == 1:
        return writer.kernel("opaque", kernel, *arguments)
    return relax.Tuple(writer.kernels("opaque", kernel, len(outputs), *arguments))


def _shape(wrapper: Wrapper) -> Shape:
    return (
        tuple(int(n) for n in np.atleast_1d(wrapper.tensor.ShapeAsNumpy()))
        if (wrapper.tensor.ShapeLength())
        else ()
    )


def _size(converter: Converter, wrapper: Wrapper) -> int:
    return _bytes(_shape(wrapper), converter.get_tensor_type_str(wrapper.tensor.Type()))


def _bytes(shape: Shape, dtype: str) -> int:
    return int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
