"""Tensors of an ONNX graph: their types, and their stored values."""

from typing import TYPE_CHECKING

from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.frontends.model_file import size_bytes
from tvm_serenity.graph import Role, Tensor

if TYPE_CHECKING:
    import onnx

_TYPES = (
    *(("undefined", 0), ("float32", 32), ("uint8", 8), ("int8", 8), ("uint16", 16), ("int16", 16)),
    *(("int32", 32), ("int64", 64), ("string", 0), ("bool", 8), ("float16", 16), ("float64", 64)),
    *(("uint32", 32), ("uint64", 64), ("complex64", 64), ("complex128", 128), ("bfloat16", 16)),
    *(("float8_e4m3fn", 8), ("float8_e4m3fnuz", 8), ("float8_e5m2", 8), ("float8_e5m2fnuz", 8)),
    *(("uint4", 4), ("int4", 4), ("float4_e2m1fn", 4), ("float8_e8m0fnu", 8)),
    *(("uint2", 2), ("int2", 2)),
)
"""Name and bits per element by TensorProto.DataType; 0 for types without a fixed width."""

MAX_DENSE = 2**28
"""The most elements of a sparse constant in dense form."""

_EXTERNAL = 1
"""TensorProto.DataLocation.EXTERNAL."""

_STRING = 8
"""TensorProto.DataType.STRING."""


def is_external(tensor: "onnx.TensorProto") -> bool:
    """Return whether the data of a TensorProto is in another file."""
    return int(tensor.data_location) == _EXTERNAL


def stored_tensor(proto: "onnx.TensorProto") -> Tensor:
    """Return the constant of an initializer; external data is not read."""
    if proto.data_type == _STRING:
        if is_external(proto):
            raise InputError(f"tensor {proto.name!r}: strings cannot be stored in another file")
        size = sum(len(text) for text in proto.string_data)
        return Tensor(proto.name, size, tuple(proto.dims), "string", Role.CONSTANT)
    tensor = typed_tensor(proto.name, list(proto.dims), proto.data_type, Role.CONSTANT)
    if proto.raw_data and len(proto.raw_data) != tensor.size_bytes:
        raise InputError(
            f"tensor {proto.name!r}: stores {len(proto.raw_data)} bytes, but its shape "
            f"{list(proto.dims)} of {tensor.dtype} takes {tensor.size_bytes}"
        )
    return tensor


def constant_tensor(name: str, node: "onnx.NodeProto") -> Tensor:
    """Return the value in a Constant node's attributes."""
    for attribute in node.attribute:
        if attribute.name == "value":
            value = stored_tensor(attribute.t)
            return Tensor(name, value.size_bytes, value.shape, value.dtype, Role.CONSTANT)
    size = sum(attribute.ByteSize() for attribute in node.attribute)
    return Tensor(name, size, role=Role.CONSTANT)


def typed_tensor(name: str, shape: list[int], elem_type: int, role: Role) -> Tensor:
    """Return a tensor of TensorProto.DataType ``elem_type``.

    Raises :class:`UnsupportedError` with its name for unknown types.
    """
    if not 0 <= elem_type < len(_TYPES):
        raise UnsupportedError(f"tensor {name!r}: unknown element type {elem_type}")
    dtype, bits = _TYPES[elem_type]
    if not bits:
        raise UnsupportedError(
            f"tensor {name!r}: {dtype} tensors have no fixed size; compute them outside "
            "of the network"
        )
    return Tensor(name, size_bytes(name, shape, bits), tuple(shape), dtype, role)
