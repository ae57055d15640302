"""States of the operators of a ``.tflite`` file: parameters and results of ``main``.

A state comes in as an extra parameter (after the inputs of the file) and goes out as an extra
result (after its outputs), so that the module stays a pure function; whoever runs the model feeds
the one back into the other. ``main`` has the attribute ``STATES``: the value that fills each state
at first, the stored form of zero.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tvm_serenity.operators import operator

if TYPE_CHECKING:
    import tflite


def state_tensors(graph: "tflite.SubGraph", kinds: Sequence[str]) -> list[int]:
    """Return the tensors that are states of operators of a graph, in order."""
    found = [
        int(graph.Operators(i).Inputs(index))
        for i, kind in enumerate(kinds)
        for index in operator(kind).states
    ]
    return list(dict.fromkeys(found))


def initial_values(graph: "tflite.SubGraph", states: Sequence[int]) -> list[int]:
    """Return the stored value of zero for each state: its zero point."""
    found = (graph.Tensors(state).Quantization() for state in states)
    return [int(q.ZeroPoint(0)) if q is not None and q.ZeroPointLength() else 0 for q in found]
