"""States of the operators of a ``.tflite`` file: parameters and results of ``main``.

A state comes in as an extra parameter (after the inputs of the file) and goes out as an extra
result (after its outputs), so that the module stays a pure function; whoever runs the model feeds
the one back into the other. ``main`` has the attribute ``STATES``: the value that fills each state
at first, the stored form of zero.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tvm_serenity.graph import Tensor
from tvm_serenity.operators import operator

if TYPE_CHECKING:
    import tflite

TYPES = {"float32": 0, "int32": 2, "int16": 7, "int8": 9, "uint32": 15}
"""Types of states that operators keep to themselves, by their numbers in a file."""


def state_tensors(
    graph: "tflite.SubGraph", kinds: Sequence[str], kept: Sequence[Sequence[int]]
) -> list[int]:
    """Return the tensors that are states of operators of a graph, in order.

    ``kept``: of each operator, those that the file does not list.
    """
    found = []
    for i, kind in enumerate(kinds):
        found += [int(graph.Operators(i).Inputs(index)) for index in operator(kind).states]
        found += kept[i]
    return list(dict.fromkeys(found))


def initial_values(graph: "tflite.SubGraph", states: Sequence[int]) -> list[int]:
    """Return the stored value of zero for each state: its zero point."""
    found = (graph.Tensors(state).Quantization() for state in states)
    return [int(q.ZeroPoint(0)) if q is not None and q.ZeroPointLength() else 0 for q in found]


def unlisted(state: Tensor) -> "tflite.Tensor":
    """Return a state that the file does not list as a tensor of a file, without a name."""
    import flatbuffers
    import tflite

    builder, shape = flatbuffers.Builder(64), state.shape or ()
    tflite.TensorStartShapeVector(builder, len(shape))
    for extent in reversed(shape):
        builder.PrependInt32(extent)
    vector = builder.EndVector()
    tflite.TensorStart(builder)
    tflite.TensorAddShape(builder, vector)
    tflite.TensorAddType(builder, TYPES[state.dtype])
    builder.Finish(tflite.TensorEnd(builder))
    return tflite.Tensor.GetRootAs(bytes(builder.Output()))
