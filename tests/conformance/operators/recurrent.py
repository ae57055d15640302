"""Recurrent layers, whose states go from one run to the next."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.conformance.case import Case
from tests.conformance.operators.draws import Draw, case
from tests.conformance.writer import Node, T


def _weights(d: Draw, *shape: int, dynamic: bool = False) -> T:
    """Floats; if the range is ``dynamic``, 8-bit integers."""
    if dynamic:
        return T(shape, "int8", d.scale(0.004), 0, np.maximum(d.values(shape, "int8"), -127))
    return T(shape, "float32", data=d.values(shape, "float32") / 4)


@st.composite
def _layer(draw: Any, lstm: bool) -> Case:
    d = Draw(draw)
    batch, steps, inputs, units = (d.number(1, 3) for _ in range(4))
    swapped = d.chance()
    lead = (steps, batch) if swapped else (batch, steps)
    gates = 4 if lstm else 1
    tensors, dynamic = [T((*lead, inputs), "float32")], lstm and d.chance()
    tensors += [_weights(d, units, inputs, dynamic=dynamic) for _ in range(gates)]
    tensors += [_weights(d, units, units, dynamic=dynamic) for _ in range(gates)]
    tensors += [_weights(d, units) for _ in range(gates)]
    states = [T((batch, units), "float32", variable=True) for _ in range(2 if lstm else 1)]
    count = len(tensors)
    tensors += [*states, T((*lead, units), "float32")]
    read, kind = list(range(len(tensors) - 1)), "UNIDIRECTIONAL_SEQUENCE_RNN"
    if lstm:
        kind = "UNIDIRECTIONAL_SEQUENCE_LSTM"
        read = [*range(9), -1, -1, -1, *range(9, 13), -1, -1, count, count + 1, *[-1] * 4]
    options: dict[str, Any] = {"timeMajor": swapped, "fusedActivationFunction": 4}
    if lstm:
        options["cellClip"] = d.one((0.0, 0.0, 0.3))
        options["asymmetricQuantizeInputs"] = dynamic and d.chance()
    else:
        options["fusedActivationFunction"] = d.one((0, 1, 4))
    node = Node(kind, read, [len(tensors) - 1], options)
    feeds = tuple((d.values(tensors[0].shape, "float32"),) for _ in range(4))
    return case(kind, tensors, node, feeds=feeds)


@st.composite
def _svdf(draw: Any) -> Case:
    """A filter over time: floats, or an input of int8 with a state of 8 or 16 bits."""
    d = Draw(draw)
    batch, inputs, memory, rank = d.number(1, 2), d.number(1, 8), d.number(1, 6), d.number(1, 3)
    units = d.number(1, 4)
    filters, held = rank * units, d.one(("int16", "int8", "float32"))
    if held == "float32":
        x, y = T((batch, inputs), held), T((batch, units), held)
        dynamic = d.chance()
        feature = _weights(d, filters, inputs, dynamic=dynamic)
        time = _weights(d, filters, memory, dynamic=dynamic)
        bias, state = _weights(d, units), T((batch, filters * memory), held, variable=True)
    else:
        wide, dynamic = held == "int16", False
        x, y = d.tensor((batch, inputs), "int8"), d.tensor((batch, units), "int8", 0.3)
        feature = T(
            (filters, inputs), "int8", d.scale(0.01), 0, d.values((filters, inputs), "int8")
        )
        values = d.values((filters, memory), held)
        scale = d.scale(0.0002 if wide else 0.02)
        time = T((filters, memory), held, scale, 0, values // (9 if wide else 1))
        steps = d.scale(0.002 if wide else 0.4)
        zero = 0 if wide else d.zero(held)
        state = T((batch, filters * memory), held, steps, zero, variable=True)
        offsets = np.asarray(d.rng().integers(-9999, 9999, (units,)), np.int32)
        bias = T((units,), "int32", steps * scale, 0, offsets)
    tensors, without = [x, feature, time, bias, state, y], held != "int8" and d.number(0, 4) == 0
    options = {"rank": rank, "fusedActivationFunction": d.one((0, 1)) if held == "float32" else 1}
    options["asymmetricQuantizeInputs"] = dynamic and d.chance()
    node = Node("SVDF", [0, 1, 2, -1 if without else 3, 4], [5], options)
    feeds = tuple((d.values(x.shape, x.dtype),) for _ in range(5))
    return case("SVDF", tensors, node, feeds=feeds)


@st.composite
def _integers(draw: Any) -> Case:
    """An LSTM layer of int8 or int16 with cells of int16."""
    d = Draw(draw)
    batch, steps, inputs, units = (d.number(1, 6) for _ in range(4))
    swapped = d.chance()
    lead = (steps, batch) if swapped else (batch, steps)
    dtype = d.one(("int8", "int16"))
    wide = 256 if dtype == "int16" else 1
    steps_of = (d.scale(0.05 / wide), d.scale(2**-7 / wide))
    x = T((*lead, inputs), dtype, steps_of[0], d.zero(dtype))
    made = T((*lead, units), dtype, steps_of[1], d.zero(dtype))
    cells = T((batch, units), "int16", 2.0 ** -d.number(9, 15), variable=True)
    tensors = [x]
    scales: list[float] = []
    for size, source in zip((inputs, units), steps_of, strict=True):
        for _ in range(4):
            weights = d.values((units, size), "int8")
            scales.append(d.scale(2.0 ** d.number(-3, 3) / (64 * 64 * source * wide)))
            tensors.append(T((units, size), "int8", scales[-1], data=weights))
    for gate in range(4):
        bias = d.values((units,), "int16").astype(np.int64 if wide > 1 else np.int32)
        product = float(np.float32(steps_of[0]) * np.float32(scales[gate]))
        tensors.append(T((units,), str(bias.dtype), product, data=bias))
    state = T((batch, units), dtype, made.scale, made.zero, variable=True)
    empty = T((0,), "float32")
    count = len(tensors)
    tensors += [state, cells, made, empty, T((0,), dtype, made.scale, made.zero)]
    read = [*range(9), -1, -1, -1, *range(9, 13), -1, -1, count, count + 1, *[-1] * 4]
    options: dict[str, Any] = {"timeMajor": swapped, "fusedActivationFunction": 4}
    if d.number(0, 3) == 0:
        options["cellClip"] = d.number(1, 40) / 8
    within = [*[count + 3] * 4, count + 4]
    kind = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    node = Node(kind, read, [count + 2], options, intermediates=within)
    feeds = tuple((d.values(x.shape, dtype),) for _ in range(4))
    return case(kind, tensors, node, feeds=feeds)


STRATEGIES: dict[str, SearchStrategy[Case]] = {
    "UNIDIRECTIONAL_SEQUENCE_RNN": _layer(False),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _layer(True) | _integers(),
    "SVDF": _svdf(),
}
