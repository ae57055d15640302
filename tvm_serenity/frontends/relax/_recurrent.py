"""Recurrent layers of float tensors, step by step, with the states they leave (see ``_svdf``)."""

from typing import Any

import tflite
from tvm import relax

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends.relax._parts import element

_STATES_FROM = 18
"""The first state of an LSTM among its inputs."""


def rnn(c: Any, op: Any) -> Any:
    """UNIDIRECTIONAL_SEQUENCE_RNN: ``h = activation(W x + R h + b)`` at every step."""
    x, weight, recurrent, bias, state = c.get_input_tensors(op)
    options = _options(op, tflite.SequenceRNNOptions)
    given, axis = _steps(c, x, options.TimeMajor())
    hidden, made = c.get_tensor_expr(state), []
    for step in given:
        total = _gate(c, step, hidden, (weight, recurrent, bias))
        hidden = c.bb.emit(
            c.convert_fused_activation_function(total, options.FusedActivationFunction())
        )
        made.append(hidden)
    _leave(c, state, hidden)
    return relax.op.stack(made, axis=axis)


def lstm(c: Any, op: Any) -> Any:
    """UNIDIRECTIONAL_SEQUENCE_LSTM without peepholes, projection, norms and clipping."""
    tensors = c.get_input_tensors(op)
    options = _options(op, tflite.UnidirectionalSequenceLSTMOptions)
    extra = [*tensors[9:12], *tensors[16:18], *tensors[20:]]
    if any(t.tensor_idx >= 0 for t in extra) or options.CellClip() or options.ProjClip():
        raise UnsupportedError("peepholes, projections, norms and clipping are unsupported")
    if any(t.tensor_idx < 0 for t in (*tensors[1:9], *tensors[12:16])):
        raise UnsupportedError("coupled gates are unsupported")
    gates = [(tensors[1 + g], tensors[5 + g], tensors[12 + g]) for g in range(4)]
    given, axis = _steps(c, tensors[0], options.TimeMajor())
    states = tensors[_STATES_FROM : _STATES_FROM + 2]
    hidden, cell = (c.get_tensor_expr(state) for state in states)
    made = []

    def activated(value: Any) -> Any:
        return c.convert_fused_activation_function(value, options.FusedActivationFunction())

    for step in given:
        into, keep, new, out = (_gate(c, step, hidden, gate) for gate in gates)
        fresh = relax.op.multiply(relax.op.sigmoid(into), activated(new))
        cell = c.bb.emit(relax.op.add(relax.op.multiply(relax.op.sigmoid(keep), cell), fresh))
        hidden = c.bb.emit(relax.op.multiply(relax.op.sigmoid(out), activated(cell)))
        made.append(hidden)
    _leave(c, states[0], hidden)
    _leave(c, states[1], cell)
    return relax.op.stack(made, axis=axis)


def unsupported(_converter: Any, _op: Any) -> Any:
    """Refuse layers whose states would be lost."""
    raise UnsupportedError("its states, which it keeps from run to run, are unsupported")


def _options(op: Any, table: Any) -> Any:
    read, given = table(), op.BuiltinOptions()
    read.Init(given.Bytes, given.Pos)
    return read


def _steps(c: Any, x: Any, time_major: bool) -> tuple[list[Any], int]:
    """The input of each step, (batch, features), and the axis of time."""
    expr = c.bb.normalize(c.get_tensor_expr(x))
    axis = 0 if time_major else 1
    count = int(expr.ty.shape[axis])
    return [element(c.bb.emit, expr, t, axis) for t in range(count)], axis


def _gate(c: Any, x: Any, hidden: Any, gate: tuple[Any, Any, Any]) -> Any:
    weight, recurrent, bias = (c.get_tensor_expr(t) for t in gate)
    first = relax.op.matmul(x, relax.op.permute_dims(weight))
    second = relax.op.matmul(hidden, relax.op.permute_dims(recurrent))
    return c.bb.emit(relax.op.add(relax.op.add(first, second), bias))


def _leave(c: Any, state: Any, value: Any) -> None:
    c.exp_tab.set_expr(state.tensor.Name().decode(), value, force_override=True)
