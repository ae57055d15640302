"""Preparation of an ONNX model for the importer: complete, standard, with constants folded.

1. External data is read (``_onnx_external``), named dimensions get their sizes, float16 is computed
   in float32 (``_onnx_half``).
2. 4-bit weights are read as 8-bit ones (``_onnx_nibbles``), quantised operators become standard
   operators (``_onnx_qlinear``), the model's own functions are inlined, sparse constants become
   dense. Standard operators in ``BY_FUNCTION`` are replaced by their body in the ONNX standard.
3. Values that depend only on constants and shapes are computed (``_onnx_fold``); If, Loop and Scan
   are expanded (``_onnx_control``).
4. Quantised constants are stored as integers (``_onnx_weights``). Operators that steps 3 and 4
   exposed pass step 2 again.
5. Unread nodes are removed; convolutions of quantised values by quantised weights become integer
   convolutions (``_onnx_integer``).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends._onnx_control import without_control
from tvm_serenity.frontends._onnx_external import embed
from tvm_serenity.frontends._onnx_fold import KnownValues, standard_version
from tvm_serenity.frontends._onnx_half import widened
from tvm_serenity.frontends._onnx_integer import without_conv_integer
from tvm_serenity.frontends._onnx_names import outer_reads
from tvm_serenity.frontends._onnx_nibbles import with_bytes
from tvm_serenity.frontends._onnx_qlinear import expanded
from tvm_serenity.frontends._onnx_scales import check_scales
from tvm_serenity.frontends._onnx_shapes import set_dims
from tvm_serenity.frontends._onnx_tensors import MAX_DENSE
from tvm_serenity.frontends._onnx_weights import store_quantised
from tvm_serenity.frontends.model_file import REMEDY

if TYPE_CHECKING:
    import onnx

BY_FUNCTION = (
    *("Attention", "BlackmanWindow", "CausalConvWithState", "Celu", "CenterCropPad"),
    *("FlexAttention", "HammingWindow", "HannWindow", "LinearAttention"),
    *("NegativeLogLikelihoodLoss", "RotaryEmbedding", "SoftmaxCrossEntropyLoss", "SwiGLU"),
    "Swish",
)
"""Operators that TVM does not import, or confuses with another of the same name."""

_DEEPEST = 4
"""The nesting limit of the standard's functions."""
_MAX_INLINED_BYTES = 2**31 - 2**20
"""Protobuf's message size limit: ONNX's inliner cannot receive larger models."""


def prepared(
    model: "onnx.ModelProto", dims: Mapping[str, int], folder: Path
) -> tuple[Any, Mapping[str, Any]]:
    """Return a prepared copy of ``model``, and the types of its values by name.

    ``model`` does not change. Raises :class:`InputError` for unreadable data, and
    :class:`UnsupportedError` for functions that cannot be inlined.
    """
    made = type(model)()
    made.CopyFrom(model)
    embed(made, folder)
    widened(made)
    set_dims(made.graph, dims)
    made = _in_the_standard(made)
    found = without_control(made)
    stored = store_quantised(made.graph, standard_version(made))
    if found.written_out or stored:
        made = _in_the_standard(made)
        found = without_control(made)
    found.check(made.graph)
    known = found.known
    _leave_out_empty(made.graph, known)
    _write_pad_values(made.graph, known)
    _fold(made.graph, known)
    without_conv_integer(made.graph, known)
    _state_types(made.graph, known)
    return made, known.types


def _in_the_standard(model: "onnx.ModelProto") -> Any:
    """Return ``model`` with standard operators without bodies, and dense byte constants."""
    with_bytes(model)
    model = _without_functions(expanded(model))
    _make_dense(model.graph)
    check_scales(model.graph)
    return model


def _without_functions(model: "onnx.ModelProto") -> Any:
    """Return ``model`` with its own functions and those of ``BY_FUNCTION`` inlined."""
    from onnx import helper, inliner

    asked, own = _functions(model)
    if not asked and not own:
        return model
    name = asked[0][1] if asked else own[0][1]
    made = next((n.output[0] for n in model.graph.node if n.op_type == name), "")
    where = f"operator {name} (output {made!r})"
    if model.ByteSize() > _MAX_INLINED_BYTES:
        raise UnsupportedError(
            f"{where}: it is a function, and the model is too large for ONNX's inliner; {REMEDY}"
        )
    for tensor in model.graph.initializer:  # the inliner reads types only from value_info
        info = helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
        model.graph.value_info.append(info)
    try:
        if own:
            model = inliner.inline_local_functions(model)
        for _ in range(_DEEPEST):
            asked, _own = _functions(model)
            if not asked:
                break
            model = inliner.inline_selected_functions(model, asked, inline_schema_functions=True)
    except Exception:  # the bindings raise any type
        raise UnsupportedError(
            f"{where}: ONNX cannot inline this function because types within it are "
            f"unknown; {REMEDY}"
        ) from None
    return model


def _functions(model: "onnx.ModelProto") -> tuple[list[Any], list[Any]]:
    """Return domain and name of operators to inline: ``BY_FUNCTION``, and the model's own."""
    used = dict.fromkeys((node.domain, node.op_type) for node in model.graph.node)
    asked = [(domain, name) for domain, name in used if not domain and name in BY_FUNCTION]
    return asked, [(function.domain, function.name) for function in model.functions]


def _make_dense(graph: "onnx.GraphProto") -> None:
    """Store sparse initializers and the values of Constant nodes as dense tensors."""
    from onnx import numpy_helper

    for sparse in graph.sparse_initializer:
        dense = numpy_helper.from_array(_dense(sparse), sparse.values.name)
        graph.initializer.append(dense)
    del graph.sparse_initializer[:]
    for node in graph.node:
        if node.op_type == "Constant" and not node.domain and len(node.attribute) == 1:
            value = _constant(node.attribute[0])
            if value is not None:
                del node.attribute[:]
                tensor = numpy_helper.from_array(value)
                node.attribute.add(name="value", type=4).t.CopyFrom(tensor)  # 4: TENSOR


def _dense(sparse: "onnx.SparseTensorProto") -> Any:
    from onnx import numpy_helper

    name, shape = sparse.values.name, tuple(sparse.dims)
    if any(extent < 0 for extent in shape) or _product(shape) > MAX_DENSE:
        raise UnsupportedError(
            f"tensor {name!r}: a sparse constant of shape {list(shape)} is too large to "
            "store as dense"
        )
    values = numpy_helper.to_array(sparse.values)
    index = numpy_helper.to_array(sparse.indices)
    result = np.zeros(shape, values.dtype)
    try:
        if index.ndim == 1:
            result.reshape(-1)[index] = values
        else:
            result[tuple(index.T)] = values
    except (IndexError, ValueError):
        raise UnsupportedError(
            f"tensor {name!r}: a sparse constant has indices outside of shape {list(shape)}"
        ) from None
    return result


def _constant(attribute: "onnx.AttributeProto") -> Any:
    """Return a Constant node's attribute as an array, None for a tensor or text."""
    kinds = {
        "value_float": lambda a: np.array(a.f, np.float32),
        "value_floats": lambda a: np.array(list(a.floats), np.float32),
        "value_int": lambda a: np.array(a.i, np.int64),
        "value_ints": lambda a: np.array(list(a.ints), np.int64),
        "sparse_value": lambda a: _dense(a.sparse_tensor),
    }
    made = kinds.get(attribute.name)
    return None if made is None else made(attribute)  # type: ignore[no-untyped-call]


def _leave_out_empty(graph: "onnx.GraphProto", known: KnownValues) -> None:
    """Remove the empty scales of a Resize, which old files write together with sizes."""
    for node in graph.node:
        if node.op_type != "Resize" or node.domain or len(node.input) < 4:
            continue
        for index in (2, 3):
            value = known.values.get(node.input[index])
            if value is not None and value.size == 0:
                node.input[index] = ""


def _write_pad_values(graph: "onnx.GraphProto", known: KnownValues) -> None:
    """Store the real value of a Pad whose value is quantised and known."""
    from onnx import numpy_helper

    for node in graph.node:
        if node.op_type == "Pad" and len(node.input) > 2 and node.input[2] in known.scalars:
            name = f"{node.output[0]}:value"
            graph.initializer.append(numpy_helper.from_array(known.scalars[node.input[2]], name))
            node.input[2] = name


def _fold(graph: "onnx.GraphProto", known: KnownValues) -> None:
    """Remove nodes with known results, and unread ones; store the results that are read."""
    from onnx import numpy_helper

    wanted = {output.name for output in graph.output}
    kept = []
    for node in reversed(graph.node):
        made = [name for name in node.output if name]
        if not any(name in wanted for name in made):
            continue
        if all(name in known.values for name in made):
            continue
        kept.append(node)
        wanted.update(name for name in node.input if name)
        wanted.update(outer_reads(node))
    stored = {tensor.name: tensor for tensor in graph.initializer}
    kept_nodes = [type(node).FromString(node.SerializeToString()) for node in reversed(kept)]
    made_here = {name for node in kept_nodes for name in node.output}
    fresh = [
        numpy_helper.from_array(known.values[name], name)
        for name in sorted(wanted & known.values.keys() - stored.keys() - made_here)
    ]
    for index in reversed(range(len(graph.input))):  # old files list initializers as inputs
        if graph.input[index].name in stored:
            del graph.input[index]
    unread = [i for i, tensor in enumerate(graph.initializer) if tensor.name not in wanted]
    for index in reversed(unread):
        del graph.initializer[index]
    graph.initializer.extend(fresh)
    del graph.node[:]
    graph.node.extend(kept_nodes)


def _state_types(graph: "onnx.GraphProto", known: KnownValues) -> None:
    """Add the known shapes of outputs."""
    for output in graph.output:
        if known.shape(output.name) is not None:
            output.type.CopyFrom(known.types[output.name])


def _product(shape: Sequence[int]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total
