"""The tensors that share buffers in onnxruntime's CPU provider.

These were measured for each operator kind in sessions of onnxruntime 1.32, by the memory growth of
chains of operators (``tests/onnx_session``): activations overwrite an input that dies, other
elementwise operators (Add, Mul, Neg, Exp, ...) do not.
"""

from dataclasses import replace

from tvm_serenity.graph import Graph, Op
from tvm_serenity.graph.reduced import Reduced, unreduced

_NAMES = """
    Celu Clip Elu HardSigmoid LeakyRelu LogSoftmax Relu Selu Sigmoid Softmax Softplus Softsign Tanh
    ThresholdedRelu
"""
OVERWRITES = frozenset(_NAMES.split())
"""Operator kinds that overwrite their first input if it dies."""
VIEWS = frozenset(("Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten"))
"""Operator kinds whose result shares its input's storage."""
_SUMMED = {"com.microsoft.FusedConv": 3, "com.microsoft.nchwc.Conv": 3}
"""Convolutions that overwrite an added tensor, with the index of that input."""


def as_allocated(graph: Graph) -> Reduced:
    """Return ``graph`` with onnxruntime's storage sharing; the caller's inputs take no bytes."""
    from tvm_serenity.operators.sharing import alias_copies  # the operator records load slowly

    reduced = alias_copies(unreduced(graph))
    graph = reduced.graph
    inputs = set(graph.inputs)
    tensors = tuple(
        replace(t, size_bytes=0, shape=None) if i in inputs else t
        for i, t in enumerate(graph.tensors)
    )
    ops = tuple(_stored(graph, op, inputs) for op in graph.ops)
    return replace(reduced, graph=graph.replace(tensors=tensors, ops=ops))


def _stored(graph: Graph, op: Op, inputs: set[int]) -> Op:
    if op.view_of is not None:
        return op if op.kind in VIEWS else replace(op, view_of=None)
    number = 0 if op.kind in OVERWRITES else _SUMMED.get(op.kind, len(op.inputs))
    if number >= len(op.inputs) or len(op.outputs) != 1:
        return op
    overwritten = op.inputs[number]
    alike = (
        graph.tensors[graph.storage[overwritten]].size_bytes
        == graph.tensors[op.outputs[0]].size_bytes
    )
    if not alike or graph.storage[overwritten] in inputs or not graph.in_profile[overwritten]:
        return op
    return replace(op, in_place=(overwritten,))
