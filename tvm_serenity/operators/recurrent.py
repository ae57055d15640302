"""Recurrent float layers over a sequence, whose states persist between runs.

Integer LSTM layers are in ``unidirectional_sequence_lstm.py``.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import PlainMeaning, StateUse
from tvm_serenity.operators.plain import activated
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Calls, Expr, Scene

_RNN_STATE, _LSTM_STATES = 4, (18, 19)
_RNN_TIME_MAJOR, _RNN_ACTIVATION = range(2)
_ACTIVATION, _CELL_CLIP, _TIME_MAJOR = 0, 1, 3


def _rnn(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return a basic RNN: ``h = activation(W x + R h + b)`` at each step."""
    given, axis = _steps(scene, values[0], scene.options.u8(_RNN_TIME_MAJOR), calls)
    activation, hidden, outputs = scene.options.u8(_RNN_ACTIVATION), values[_RNN_STATE], []
    for step in given:
        hidden = activated(calls, _gate(calls, step, hidden, values[1:4]), activation)
        outputs.append(hidden)
    calls.leave(_RNN_STATE, hidden)
    return calls.apply("stack", outputs, axis=axis)


def lstm_of_floats(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return UNIDIRECTIONAL_SEQUENCE_LSTM in floats; check that it is a plain LSTM."""
    check_plain(values)
    gates = [(values[1 + g], values[5 + g], values[12 + g]) for g in range(4)]

    def gate_values(step: Expr, hidden: Expr) -> list[Expr]:
        return [_gate(calls, step, hidden, gate) for gate in gates]

    return lstm(scene, values, gate_values, calls)


def check_plain(given: Sequence[Any]) -> None:
    """Refuse LSTM layers that are not plain; ``given`` has None for an omitted input."""
    if any(value is not None for value in (*given[9:12], *given[16:18], *given[20:])):
        raise UnsupportedError(
            "an LSTM with peepholes, projection or layer normalisation is not supported"
        )
    if any(value is None for value in (*given[1:9], *given[12:16])):
        raise UnsupportedError("an LSTM with coupled gates is not supported")


def lstm(
    scene: Scene,
    values: Sequence[Expr],
    gates: Callable[[Expr, Expr], Sequence[Expr]],
    calls: Calls,
) -> Expr:
    """Return an LSTM layer.

    ``gates`` maps a step and the state to the sums of the gates: input, forget, cell, output.
    """
    options = scene.options
    given, axis = _steps(scene, values[0], options.u8(_TIME_MAJOR), calls)
    activation, clip, outputs = options.u8(_ACTIVATION), options.f32(_CELL_CLIP), []
    hidden, cell = (values[state] for state in _LSTM_STATES)
    for step in given:
        into, keep, new, out = gates(step, hidden)
        fresh = activated(calls, new, activation)
        fresh = calls.apply("multiply", calls.apply("sigmoid", into), fresh)
        kept = calls.apply("multiply", calls.apply("sigmoid", keep), cell)
        cell = calls.apply("add", kept, fresh)
        if clip > 0:
            cell = calls.apply("clip", cell, -clip, clip)
        seen = activated(calls, cell, activation)
        hidden = calls.apply("multiply", calls.apply("sigmoid", out), seen)
        outputs.append(hidden)
    for state, value in zip(_LSTM_STATES, (hidden, cell), strict=True):
        calls.leave(state, value)
    return calls.apply("stack", outputs, axis=axis)


def _steps(scene: Scene, x: Expr, time_major: int, calls: Calls) -> tuple[list[Expr], int]:
    """Return the input of each step, (batch, features), and the time axis."""
    axis = 0 if time_major else 1
    count = scene.shape(0)[axis]
    parts = [calls.apply("strided_slice", x, [axis], [t], [t + 1]) for t in range(count)]
    return [calls.apply("squeeze", part, [axis]) for part in parts], axis


def _gate(calls: Calls, x: Expr, hidden: Expr, gate: Sequence[Expr]) -> Expr:
    weight, recurrent, bias = gate
    first = calls.apply("matmul", x, calls.apply("permute_dims", weight))
    second = calls.apply("matmul", hidden, calls.apply("permute_dims", recurrent))
    return calls.apply("add", calls.apply("add", first, second), bias)


_OTHERS = ("BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN", "LSTM")
_WHY = "its states, which persist between runs, are not supported"
OPERATORS = (
    Operator(
        kinds=("UNIDIRECTIONAL_SEQUENCE_RNN",),
        state=StateUse(inputs=(_RNN_STATE,)),
        numbers=PlainMeaning(form=_rnn),
    ),
    Operator(kinds=_OTHERS, refused=_WHY),
)
