"""The reference runtime and the tolerance of each model file."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tvm_serenity.frontends import format_at
from tvm_serenity.frontends._flatbuffer import root_table
from tvm_serenity.frontends._tflite_schema import (
    ModelField,
    OperatorField,
    SubgraphField,
    TensorField,
)
from tvm_serenity.validation.references import runtime_for
from tvm_serenity.validation.references.choice import has_dense_integers
from tvm_serenity.validation.report import Tolerance
from tvm_serenity.validation.tolerances import DYNAMIC, FLOAT, HALF, ONNXRUNTIME, QDQ, QDQ_STEPS

_FLOAT32, _INT8, _UINT8, _INT16 = 0, 9, 3, 7
_OF_BYTES = ("QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger", "QGemm")
"""ONNX operators that sum products of bytes."""
_QUANTISED = ("DequantizeLinear", "DynamicQuantizeLinear", *_OF_BYTES)


@dataclass(frozen=True)
class RuntimeRule:
    """A reference runtime by name, and the tolerance of results compared with it."""

    runtime: str
    tolerance: Tolerance


def has_runtime(path: Path) -> bool:
    """Return whether ``path`` is a file whose format has a reference runtime."""
    form = format_at(path)
    return form is not None and bool(form.runtime) and path.is_file()


def rule_for(path: Path) -> RuntimeRule:
    """Return the rule for a model file, for which :func:`has_runtime` holds.

    onnxruntime runs quantised ONNX models with its optimisations: these fuse dequantise, operator
    and quantise into integer operators, which round some ties differently from ours. TFLM rounds
    the sums of a FULLY_CONNECTED twice, LiteRT's reference kernel and ours once.
    """
    data = path.read_bytes()
    runtime = runtime_for(path, data)
    if runtime == "tflm" and has_dense_integers(data):
        return RuntimeRule(runtime, replace(FLOAT, steps=1))
    if runtime == "litert" and _rounds_activations(data):
        return RuntimeRule(runtime, DYNAMIC)
    if runtime == "onnxruntime":
        graph = _onnx_graph(data)
        step = _step_of(graph)
        if step is not None:
            return RuntimeRule("qlinear", _within(step))
        return RuntimeRule(runtime, HALF if _is_half(graph) else ONNXRUNTIME)
    return RuntimeRule(runtime, FLOAT)


def multiplies_bytes(model: Path | bytes) -> bool:
    """Return whether an ONNX model has operators that sum products of bytes."""
    import io

    import onnx

    file = io.BytesIO(model) if isinstance(model, bytes) else str(model)
    graph = onnx.load(file, load_external_data=False).graph
    return any(node.op_type in _OF_BYTES for node in graph.node)


def stores_steps(model: Path | bytes, runtime: str) -> bool:
    """Return whether a network rounds intermediate tensors to quantisation steps."""
    if runtime not in ("litert", "tflm"):
        return runtime == "qlinear"
    data = model if isinstance(model, bytes) else model.read_bytes()
    main = root_table(data, b"TFL3").tables(ModelField.SUBGRAPHS)[0]
    types = {t.u8(TensorField.TYPE) for t in main.tables(SubgraphField.TENSORS)}
    return bool(types & {_INT8, _UINT8, _INT16})


def _within(step: float) -> Tolerance:
    """Return the tolerance of a result with this quantisation step; 0: a float result."""
    if step:
        return Tolerance(1e-4, absolute=1.01 * QDQ_STEPS * step, steps=QDQ_STEPS)
    return QDQ


def _rounds_activations(data: bytes) -> bool:
    """Return whether an operator has float activations and 8-bit weights."""
    main = root_table(data, b"TFL3").tables(ModelField.SUBGRAPHS)[0]
    types = [t.u8(TensorField.TYPE) for t in main.tables(SubgraphField.TENSORS)]
    for op in main.tables(SubgraphField.OPERATORS):
        read = [types[i] for i in op.ints(OperatorField.INPUTS)[:2] if i >= 0]
        if len(read) == 2 and read[0] == _FLOAT32 and read[1] in (_INT8, _UINT8):
            return True
    return False


def _onnx_graph(data: bytes) -> Any:
    """Return the graph of an ONNX model; None if the onnx package is not installed."""
    try:
        import onnx
    except ImportError:
        return None
    return onnx.load_model_from_string(data).graph


def _is_half(graph: Any) -> bool:
    """Return whether an ONNX model has float16 inputs or constants."""
    if graph is None:
        return False
    import onnx

    types = {value.type.tensor_type.elem_type for value in graph.input}
    types |= {tensor.data_type for tensor in graph.initializer}
    return int(onnx.TensorProto.FLOAT16) in types


def _step_of(graph: Any) -> float | None:
    """Return the largest quantisation step of an ONNX model's results.

    Return 0 if it is unknown, None if the model is not quantised.
    """
    if graph is None or not any(node.op_type in _QUANTISED for node in graph.node):
        return None
    import onnx

    values = {t.name: t for t in graph.initializer}
    made: dict[str, Any] = {name: node for node in graph.node for name in node.output}
    steps = []
    for output in graph.output:
        node = made.get(output.name)
        scale = values.get(node.input[1]) if node and node.op_type == "DequantizeLinear" else None
        if scale is None:
            return 0.0
        steps.append(float(onnx.numpy_helper.to_array(scale).max()))
    return max(steps, default=0.0)
