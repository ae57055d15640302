"""Operator states of a ``.tflite`` file as parameters and results of ``main``.

A state is an extra parameter (after the file's inputs) and an extra result (after its outputs), so
that the module stays a pure function; the caller passes results back as parameters. The attribute
``STATES`` of ``main`` has the initial value of each state, the stored form of zero.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends._tflite_schema import TENSOR_TYPES
from tvm_serenity.frontends.relax._variables import Variables
from tvm_serenity.graph import Tensor
from tvm_serenity.operators import operator

if TYPE_CHECKING:
    import tflite

TYPES = {name: code for code, (name, _) in enumerate(TENSOR_TYPES)}
"""Tensor types by name: their numbers in a file."""


def state_tensors(
    graph: "tflite.SubGraph", kinds: Sequence[str], kept: Sequence[Sequence[int]]
) -> list[int]:
    """Return the tensors that are states of a graph's operators, in order.

    ``kept``: for each operator, the states that the file does not list.
    """
    found = []
    for i, kind in enumerate(kinds):
        op, places = graph.Operators(i), operator(kind).state.inputs
        if any(op.InputsLength() <= place or op.Inputs(place) < 0 for place in places):
            raise UnsupportedError(
                f"operator {kind} ({i}): the tensor of its state is missing; convert the "
                "network again"
            )
        found += [int(op.Inputs(place)) for place in places]
        found += kept[i]
    return list(dict.fromkeys(found))


def initial_values(
    graph: "tflite.SubGraph", states: Sequence[int], variables: Variables
) -> list[int]:
    """Return the initial value of each state: its zero point, or a variable's uniform value.

    It is zero for variables without a uniform value: ``variables.selected``.
    """
    found = []
    for state in states:
        variable, affine = variables.found.get(state), graph.Tensors(state).Quantization()
        if variable is not None:
            found.append(variable.fill or 0)
        else:
            known = affine is not None and affine.ZeroPointLength()
            found.append(int(affine.ZeroPoint(0)) if known else 0)
    return found


def unlisted(state: Tensor) -> "tflite.Tensor":
    """Return a state that the file does not list as an unnamed tensor of TFLite's schema."""
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
