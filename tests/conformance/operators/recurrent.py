"""Recurrent layers, whose states go from one run to the next."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.conformance.case import Case
from tests.conformance.operators.draws import Draw, case
from tests.conformance.writer import Node, T


def _weights(d: Draw, *shape: int) -> T:
    return T(shape, "float32", data=d.values(shape, "float32") / 4)


@st.composite
def _layer(draw: Any, lstm: bool) -> Case:
    d = Draw(draw)
    batch, steps, inputs, units = (d.number(1, 3) for _ in range(4))
    swapped = d.chance()
    lead = (steps, batch) if swapped else (batch, steps)
    gates = 4 if lstm else 1
    tensors = [T((*lead, inputs), "float32")]
    tensors += [_weights(d, units, inputs) for _ in range(gates)]
    tensors += [_weights(d, units, units) for _ in range(gates)]
    tensors += [_weights(d, units) for _ in range(gates)]
    states = [T((batch, units), "float32", variable=True) for _ in range(2 if lstm else 1)]
    count = len(tensors)
    tensors += [*states, T((*lead, units), "float32")]
    read, kind = list(range(len(tensors) - 1)), "UNIDIRECTIONAL_SEQUENCE_RNN"
    if lstm:
        kind = "UNIDIRECTIONAL_SEQUENCE_LSTM"
        read = [*range(9), -1, -1, -1, *range(9, 13), -1, -1, count, count + 1, *[-1] * 4]
    options = {"timeMajor": swapped, "fusedActivationFunction": 4 if lstm else d.one((0, 1, 4))}
    node = Node(kind, read, [len(tensors) - 1], options)
    feeds = tuple((d.values(tensors[0].shape, "float32"),) for _ in range(4))
    return case(kind, tensors, node, feeds=feeds)


STRATEGIES: dict[str, SearchStrategy[Case]] = {
    "UNIDIRECTIONAL_SEQUENCE_RNN": _layer(False),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _layer(True),
}
