"""Queries on the inputs of ONNX operators."""

from collections.abc import Mapping, Sequence
from typing import Any

import tvm
from tvm import relax

Attributes = Mapping[str, Any]


def constant(inputs: Sequence[Any], index: int) -> Any:
    """Return the array of an input, None if it is omitted or computed."""
    value = inputs[index] if len(inputs) > index else None
    return value.value.numpy() if isinstance(value, tvm.ir.GenericConst) else None


def shape_of(x: relax.Expr) -> list[int]:
    """Return the extents of a value."""
    return [int(extent) for extent in x.ty.shape.values]


def dtype_of(x: relax.Expr) -> str:
    """Return the element type of a value, "" unless it is a tensor."""
    kind = getattr(x, "ty", None)
    return str(kind.dtype.dtype) if isinstance(kind, relax.TensorType) else ""
