"""Constant folding and shape inference on ONNX graphs with small constants.

ONNX's own inference follows sizes through few operators. Here each node is visited once, in order.
If the type of an output is incomplete, ONNX infers it for this node from the known values; if all
inputs are known and the result is small, ONNX's reference implementation computes it. Nodes that
read subgraphs, draw random numbers or process strings are skipped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tvm_serenity.frontends._onnx_tensors import is_external

if TYPE_CHECKING:
    import onnx

Array = npt.NDArray[Any]

MAX_ELEMENTS = 2**16
"""The size limit of computed values; shapes, masks and index tables are smaller."""

_NAMES = """
    Abs Add And ArgMax ArgMin Cast CastLike Ceil Clip Compress Concat Constant ConstantOfShape
    CumSum Div Equal Exp Expand Flatten Floor Gather GatherElements GatherND Greater GreaterOrEqual
    Identity Less LessOrEqual Log Max Mean Min Mod Mul Neg NonZero Not OneHot Or Pow Range
    Reciprocal ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Reshape Round
    ScatterElements ScatterND Shape Sign Size Slice Split Sqrt Squeeze Sub Sum Tile Transpose Trilu
    Unsqueeze Where Xor
"""
FOLDED = frozenset(_NAMES.split())
"""Operators that are computed if all inputs are known."""
_QUANTISING = ("QuantizeLinear", "DequantizeLinear")
NUMBERS = frozenset((1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13))
"""TensorProto.DataType of the types that numpy has."""


@dataclass
class KnownValues:
    """The known values of a graph by name: types with shapes, and small values."""

    types: dict[str, Any]
    values: dict[str, Array] = field(default_factory=dict)
    scalars: dict[str, Array] = field(default_factory=dict)
    """Quantised or dequantised single values, whose operators are kept."""

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the extents of a tensor, None if one is unknown."""
        kind = self.types.get(name)
        if kind is None or not kind.HasField("tensor_type"):
            return None
        if not kind.tensor_type.HasField("shape"):
            return None
        dims = kind.tensor_type.shape.dim
        if not all(dim.HasField("dim_value") for dim in dims):
            return None
        return tuple(int(dim.dim_value) for dim in dims)


def followed(model: "onnx.ModelProto", types: Mapping[str, Any]) -> KnownValues:
    """Return the values that the constants of ``model`` determine, and inferred types."""
    known = KnownValues(dict(types))
    for tensor in model.graph.initializer:
        stored(known, tensor)
    version = standard_version(model)
    for node in model.graph.node:
        follow(known, node, version, model.opset_import)
    return known


def standard_version(model: "onnx.ModelProto") -> int:
    """Return the opset version of a model."""
    versions = {entry.domain: entry.version for entry in model.opset_import}
    return int(versions.get("", versions.get("ai.onnx", 1)))


def stored(known: KnownValues, tensor: "onnx.TensorProto") -> None:
    """Add the value of a stored tensor."""
    from onnx import TypeProto, numpy_helper

    kind = TypeProto()
    kind.tensor_type.elem_type = tensor.data_type
    kind.tensor_type.shape.SetInParent()
    for extent in tensor.dims:
        kind.tensor_type.shape.dim.add().dim_value = extent
    known.types.setdefault(tensor.name, kind)
    if tensor.data_type not in NUMBERS or _elements(tensor.dims) > MAX_ELEMENTS:
        return
    if is_external(tensor):
        return
    try:
        known.values[tensor.name] = numpy_helper.to_array(tensor)
    except (ValueError, TypeError):  # a damaged tensor has no known value
        return


def follow(
    known: KnownValues, node: "onnx.NodeProto", version: int, imports: Sequence[Any]
) -> None:
    """Add the known outputs of ``node``, a standard operator."""
    if node.domain not in ("", "ai.onnx"):
        return
    if any(known.shape(name) is None for name in node.output if name):
        known.types.update(_inferred(known, node, version, imports))
    if node.op_type == "Shape" and len(node.input) == 1:
        extents = known.shape(node.input[0])
        if extents is not None:
            start, end = (_integer(node, name) for name in ("start", "end"))
            known.values[node.output[0]] = np.array(extents[slice(start, end)], np.int64)
    elif node.op_type == "Size" and len(node.input) == 1:
        extents = known.shape(node.input[0])
        if extents is not None:
            known.values[node.output[0]] = np.array(_elements(extents), np.int64)
    elif node.op_type in _QUANTISING:
        known.scalars.update(_scalar(known, node))
    elif _can_compute(known, node):
        known.values.update(_computed(known, node, version))


def _inferred(
    known: KnownValues, node: "onnx.NodeProto", version: int, imports: Sequence[Any]
) -> dict[str, Any]:
    """Return the types that ONNX infers for the outputs of one node, if they add information."""
    from onnx import defs, numpy_helper, shape_inference

    if any(a.HasField("g") or a.graphs for a in node.attribute):
        return {}
    try:
        schema = defs.get_schema(node.op_type, version, "")
        reads = [name for name in node.input if name]
        made = shape_inference.infer_node_outputs(
            schema,
            node,
            {name: known.types[name] for name in reads},
            {n: numpy_helper.from_array(known.values[n]) for n in reads if n in known.values},
            opset_imports=list(imports),
        )
    except Exception:  # unknown inputs and errors of the bindings: the type stays unknown
        return {}
    better = KnownValues(made)
    return {
        name: kind
        for name, kind in made.items()
        if name not in known.types or better.shape(name) is not None
    }


def _can_compute(known: KnownValues, node: "onnx.NodeProto") -> bool:
    if node.op_type not in FOLDED or not node.output:
        return False
    if any(name and name not in known.values for name in node.input):
        return False
    if any(a.HasField("g") or a.HasField("s") or a.strings for a in node.attribute):
        return False
    if node.op_type in (
        "NonZero",
        "Compress",
    ):  # the result has at most rank times the elements of the input
        return True
    for name in node.output:
        kind, extents = known.types.get(name), known.shape(name)
        if name and (extents is None or _elements(extents) > MAX_ELEMENTS):
            return False
        if name and kind is not None and kind.tensor_type.elem_type not in NUMBERS:
            return False
    return True


def _scalar(known: KnownValues, node: "onnx.NodeProto") -> dict[str, Array]:
    """Return the quantised or dequantised single value; nothing for unknown values.

    ONNX's reference implementation wraps values far outside of the range.
    """
    held = [known.scalars.get(n, known.values.get(n)) for n in node.input if n]
    if len(held) < 2 or any(value is None or value.size != 1 for value in held):
        return {}
    value, scale, *zeros = (np.asarray(v).reshape(()) for v in held)
    if node.op_type == "DequantizeLinear":
        lacking = value.astype(np.int64) - sum(zeros)
        return {node.output[0]: lacking.astype(scale.dtype) * scale}
    zero = zeros[0] if zeros else np.uint8(0)
    if zero.dtype.kind not in "iu" or (
        node.attribute and not zeros
    ):  # the output type is an attribute
        return {}
    limits = np.iinfo(zero.dtype)
    with np.errstate(all="ignore"):
        found = np.clip(np.rint(value / scale) + zero, limits.min, limits.max)
    return {} if np.isnan(found) else {node.output[0]: found.astype(zero.dtype)}


def reference_results(
    node: "onnx.NodeProto", version: int, values: Mapping[str, Array]
) -> dict[str, Array] | None:
    """Return the outputs of a node by ONNX's reference implementation; None if it fails."""
    from onnx.reference import ReferenceEvaluator

    try:
        with np.errstate(all="ignore"):
            found = ReferenceEvaluator(node, opsets={"": version}).run(None, dict(values))
    except Exception:  # the reference implementation raises any type
        return None
    return {name: np.asarray(v) for name, v in zip(node.output, found, strict=False) if name}


def _computed(known: KnownValues, node: "onnx.NodeProto", version: int) -> dict[str, Array]:
    """Return the outputs of a node by ONNX's reference implementation, empty if it fails."""
    from onnx import TypeProto, helper

    given = {name: known.values[name] for name in node.input if name}
    found = reference_results(node, version, given) or {}
    made = {}
    for name, array in found.items():
        if array.dtype.kind not in "biuf" or array.size > MAX_ELEMENTS:
            continue
        expected = known.shape(name)
        if expected is not None and expected != array.shape:
            continue
        made[name] = array
        kind = TypeProto()
        kind.CopyFrom(
            helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        )
        known.types[name] = kind
    return made


def _integer(node: "onnx.NodeProto", name: str) -> int | None:
    return next((int(a.i) for a in node.attribute if a.name == name), None)


def _elements(shape: Sequence[int]) -> int:
    count = 1
    for extent in shape:
        count *= int(extent)
    return count
