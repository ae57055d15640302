"""Sizes of the tensors of an ONNX graph, by shape inference and from what is stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.frontends.model_file import size_bytes
from tvm_serenity.graph import Role, Tensor

_TYPES = (
    *(("undefined", 0), ("float32", 32), ("uint8", 8), ("int8", 8), ("uint16", 16), ("int16", 16)),
    *(("int32", 32), ("int64", 64), ("string", 0), ("bool", 8), ("float16", 16), ("float64", 64)),
    *(("uint32", 32), ("uint64", 64), ("complex64", 64), ("complex128", 128), ("bfloat16", 16)),
    *(("float8_e4m3fn", 8), ("float8_e4m3fnuz", 8), ("float8_e5m2", 8), ("float8_e5m2fnuz", 8)),
    *(("uint4", 4), ("int4", 4), ("float4_e2m1fn", 4)),
)
"""Name and bits an element by TensorProto.DataType; 0 where a type has no fixed width."""

_EXTERNAL = 1
"""TensorProto.DataLocation.EXTERNAL."""

_STRING = 8
"""TensorProto.DataType.STRING."""


@dataclass(frozen=True)
class Shapes:
    """What is known about the values of a graph, by name; ``reason`` why others are not."""

    types: Mapping[str, Any]
    dims: tuple[str, ...]
    reason: str

    def tensor(self, name: str) -> Tensor:
        """The activation called ``name``."""
        if name not in self.types:
            raise UnsupportedError(f"tensor {name!r}: its shape cannot be inferred{self.reason}")
        kind = self.types[name]
        if not kind.HasField("tensor_type"):
            raise UnsupportedError(f"tensor {name!r}: is a {kind.WhichOneof('value')}, no tensor")
        tensor = kind.tensor_type
        if not tensor.HasField("shape"):
            raise UnsupportedError(f"tensor {name!r}: its shape cannot be inferred{self.reason}")
        shape = [_dim(d) for d in tensor.shape.dim]
        if any(isinstance(dim, str) for dim in shape):
            text = ", ".join(map(str, shape))
            raise UnsupportedError(f"tensor {name!r}: unknown size in ({text}){self._advice()}")
        return _tensor(name, [int(dim) for dim in shape], tensor.elem_type, Role.ACTIVATION)

    def _advice(self) -> str:
        if not self.dims:
            return "; store the model with fixed shapes"
        return f"; set the named dimensions ({', '.join(self.dims)}), e.g. {self.dims[0]}=1"


def known_shapes(model: Any, dims: Mapping[str, int]) -> Shapes:
    """Return the shapes that the model states or ONNX infers, with ``dims`` put in."""
    from onnx import shape_inference

    fixed = type(model)()
    fixed.CopyFrom(model)
    named = _set_dims(fixed.graph, dims)
    reason = ""
    try:
        graph = shape_inference.infer_shapes(fixed, data_prop=True).graph
    except Exception as error:  # the bindings raise RuntimeError and their own kinds
        graph, reason = fixed.graph, f" ({error})"
    values = (*graph.value_info, *graph.input, *graph.output)
    return Shapes({value.name: value.type for value in values}, named, reason)


def stored_tensor(proto: Any) -> Tensor:
    """The constant that an initializer stores."""
    if proto.data_type == _STRING:
        size = sum(len(text) for text in proto.string_data)
        return Tensor(proto.name, size, tuple(proto.dims), "string", Role.CONSTANT)
    tensor = _tensor(proto.name, list(proto.dims), proto.data_type, Role.CONSTANT)
    if proto.raw_data and len(proto.raw_data) != tensor.size_bytes:
        raise InputError(
            f"tensor {proto.name!r}: stores {len(proto.raw_data)} bytes where its shape "
            f"{list(proto.dims)} of {tensor.dtype} takes {tensor.size_bytes}"
        )
    return tensor


def constant_tensor(name: str, node: Any) -> Tensor:
    """The value that a Constant node holds among its attributes."""
    for attribute in node.attribute:
        if attribute.name == "value":
            value = stored_tensor(attribute.t)
            return Tensor(name, value.size_bytes, value.shape, value.dtype, Role.CONSTANT)
    size = sum(attribute.ByteSize() for attribute in node.attribute)
    return Tensor(name, size, role=Role.CONSTANT)


def check_internal(graph: Any) -> None:
    """Refuse initializers whose bytes are in another file."""
    for tensor in graph.initializer:
        if tensor.data_location == _EXTERNAL:
            where = {entry.key: entry.value for entry in tensor.external_data}.get("location", "?")
            raise UnsupportedError(
                f"tensor {tensor.name!r}: its data is in another file ({where!r}); store the "
                "model with its data in one file"
            )


def _set_dims(graph: Any, dims: Mapping[str, int]) -> tuple[str, ...]:
    """Put ``dims`` into the shapes of the graph; return the names that its inputs have."""
    for name, size in dims.items():
        if size < 1:
            raise InputError(f"dimension {name!r}: {size} is not a size, it must be at least 1")
    named: dict[str, None] = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.HasField("dim_param") and dim.dim_param:
                named[dim.dim_param] = None
                if dim.dim_param in dims:
                    dim.dim_value = dims[dim.dim_param]
    for name in dims:
        if name not in named:
            known = ", ".join(named) or "none"
            raise InputError(f"no dimension is named {name!r}; the model names: {known}")
    return tuple(named)


def _dim(dim: Any) -> int | str:
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    return dim.dim_param or "?"


def _tensor(name: str, shape: list[int], elem_type: int, role: Role) -> Tensor:
    if not 0 <= elem_type < len(_TYPES):
        raise UnsupportedError(f"tensor {name!r}: unknown element type {elem_type}")
    dtype, bits = _TYPES[elem_type]
    if not bits:
        raise UnsupportedError(f"tensor {name!r}: {dtype} tensors have no fixed size")
    return Tensor(name, size_bytes(name, shape, bits), tuple(shape), dtype, role)
