"""Shapes of the values of an ONNX graph, from shape inference and stored constants."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.frontends._onnx_control import without_control
from tvm_serenity.frontends._onnx_external import embed_small
from tvm_serenity.frontends._onnx_fold import KnownValues
from tvm_serenity.frontends._onnx_fused import standard_in
from tvm_serenity.frontends._onnx_qlinear import expanded
from tvm_serenity.frontends._onnx_tensors import typed_tensor
from tvm_serenity.frontends.model_file import asking, checked_size, named_axis
from tvm_serenity.graph import Role, Tensor

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Shapes:
    """The known shapes of a graph's values, by name.

    ``unset``: named input dimensions without a size. ``reason``: why inference failed, if it did.
    ``makers``: the operator that computes each value.
    """

    known: KnownValues
    unset: tuple[str, ...]
    reason: str
    makers: Mapping[str, Any]

    def tensor(self, name: str) -> Tensor:
        """Return the activation called ``name``."""
        if name not in self.known.types:
            raise UnsupportedError(self._unknown(name, "its shape cannot be inferred"))
        kind = self.known.types[name]
        if not kind.HasField("tensor_type"):
            raise UnsupportedError(
                f"tensor {name!r}: is a {kind.WhichOneof('value')}, not a tensor"
                f"{self._making(name)}; export the model with plain tensors"
            )
        tensor = kind.tensor_type
        if not tensor.HasField("shape"):
            raise UnsupportedError(self._unknown(name, "its shape cannot be inferred"))
        shape = [_dim(d) for d in tensor.shape.dim]
        if any(isinstance(dim, str) for dim in shape):
            text = ", ".join(map(str, shape))
            raise UnsupportedError(self._unknown(name, f"unknown size in ({text})"))
        maker = self.makers.get(name)
        if not shape and maker is not None and maker.domain not in ("", "ai.onnx"):
            raise UnsupportedError(
                f"tensor {name!r}: computed by the custom operator "
                f"{maker.domain}.{maker.op_type}, whose result has no stated shape "
                "(exporters write the shape of a scalar if they know none); state it in "
                "the file, [1] for a scalar"
            )
        return typed_tensor(name, [int(dim) for dim in shape], tensor.elem_type, Role.ACTIVATION)

    def _unknown(self, name: str, what: str) -> str:
        """Return an error message that a property of ``name`` is unknown, with a remedy."""
        if self.unset:
            return f"tensor {name!r}: {what}; set {asking(self.unset)}"
        maker = self.makers.get(name)
        if maker is None:
            return f"tensor {name!r}: {what}{self.reason}; store the model with fixed shapes"
        return (
            f"tensor {name!r}: {what} although all inputs have "
            f"sizes:{self._making(name)[1:]}, and its size depends on values or is not "
            f"stated{self.reason}; compute its size from constants and shapes, or state "
            "it in the file"
        )

    def _making(self, name: str) -> str:
        """Describe the operator that computes ``name``; "" if there is none."""
        maker = self.makers.get(name)
        if maker is None:
            return ""
        own = maker.domain in ("", "ai.onnx")
        return (
            f", operator {maker.op_type if own else f'{maker.domain}.{maker.op_type}'} computes it"
        )


def known_shapes(model: "onnx.ModelProto", dims: Mapping[str, int], folder: Path) -> Shapes:
    """Return the shapes that the model states, ONNX infers, or small constants determine.

    ``dims``: sizes of named dimensions. ``folder``: the folder of external data.
    """
    fixed = type(model)()
    fixed.CopyFrom(model)
    embed_small(fixed, folder)
    fixed = standard_in(expanded(fixed))
    unset = set_dims(fixed.graph, dims)
    makers = {name: node for node in model.graph.node for name in node.output if name}
    found = without_control(fixed)
    return Shapes(found.known, unset, found.reason, makers)


def set_dims(graph: "onnx.GraphProto", dims: Mapping[str, int]) -> tuple[str, ...]:
    """Set ``dims`` in the shapes of ``graph``; return the input dimensions without a size.

    A dimension has the file's name, or ``INPUT:AXIS`` without one.
    """
    for name, size in dims.items():
        checked_size(name, size)
    stored = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in stored]
    named = dict.fromkeys(_dim_names(inputs))
    known = {*named, *_dim_names((*graph.value_info, *graph.output))}
    bare = dict(_unnamed(inputs))
    for name, size in dims.items():
        if name in bare:
            bare[name].dim_value = size
        elif name not in known:
            there = ", ".join((*named, *bare)) or "none"
            raise InputError(
                f"no dimension is named {name!r}; the dimensions of the model's inputs are: {there}"
            )
    for value in (*graph.input, *graph.value_info, *graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.HasField("dim_param") and dim.dim_param in dims:
                dim.dim_value = dims[dim.dim_param]
    return tuple(name for name in (*named, *bare) if name not in dims)


def _dim_names(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        for dim in value.type.tensor_type.shape.dim:
            if dim.HasField("dim_param") and dim.dim_param:
                yield dim.dim_param


def _unnamed(values: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name INPUT:AXIS of each dimension without size and name, and the dimension."""
    for value in values:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value") and not dim.dim_param:
                yield named_axis(value.name, axis), dim


def _dim(dim: "onnx.TensorShapeProto.Dimension") -> int | str:
    if dim.HasField("dim_value"):
        return int(dim.dim_value)
    if dim.dim_param.startswith(_INVENTED):
        return "?"
    return dim.dim_param or "?"


_INVENTED = "unk__"
"""The prefix of names that ONNX's inference gives to unnamed dimensions."""
