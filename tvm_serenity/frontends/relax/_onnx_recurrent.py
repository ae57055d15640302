"""ONNX's LSTM, GRU and RNN, expanded step by step; TVM's importer lacks them.

As in the standard: time first (``layout`` 1: batch first), weights (directions, gates x hidden,
features) with gates i o f c of an LSTM and z r h of a GRU, and a bias in two halves, for the input
and for the state. Each direction returns its last state.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends.relax._parts import element

Step = Callable[["_Layer", Any, Sequence[Any]], list[Any]]
"""Returns the next states, the result first, from a layer, an input and the states."""

_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "relu": relax.op.nn.relu,
    "sigmoid": relax.op.sigmoid,
    "softsign": lambda x: relax.op.divide(
        x, relax.op.add(relax.const(1, x.ty.dtype.dtype), relax.op.abs(x))
    ),
    "tanh": relax.op.tanh,
}


@dataclass(frozen=True)
class _Layer:
    """One direction: weights (features, gates x hidden), (hidden, gates x hidden).

    ``biases``: of the input and of the state, or none. ``peepholes``: of an LSTM, a row of numbers
    per gate, or none. ``attributes``: the operator's.
    """

    emit: Callable[[Any], Any]
    weight: Any
    recurrent: Any
    biases: Sequence[Any]
    peepholes: Sequence[Any]
    functions: Sequence[Callable[[Any], Any]]
    attributes: Mapping[str, Any]
    hidden: int

    def gate(self, of: relax.Var, index: int) -> Any:
        """Return the columns of a gate."""
        first = index * self.hidden
        return self.emit(relax.op.strided_slice(of, [1], [first], [first + self.hidden]))

    def activated(self, function: int, x: relax.Expr) -> Any:
        """Return an activation of the layer on clipped ``x``."""
        limit = self.attributes.get("clip", 0.0)
        if limit:
            x = self.emit(relax.op.clip(x, -limit, limit))
        return self.emit(self.functions[function](x))

    def projected(self, x: relax.Expr) -> Any:
        """Return the input's contribution to all gates."""
        return self._affine(x, self.weight, self.biases[:1])

    def returned(self, hidden: relax.Expr) -> Any:
        """Return the state's contribution to all gates."""
        return self._affine(hidden, self.recurrent, self.biases[1:])

    def _affine(self, x: relax.Expr, weight: relax.Var, biases: Sequence[Any]) -> Any:
        made = self.emit(relax.op.matmul(x, weight))
        for bias in biases:
            made = self.emit(relax.op.add(made, bias))
        return made


def _lstm_step(layer: _Layer, x: relax.Expr, states: Sequence[Any]) -> list[Any]:
    hidden, cell = states
    emit = layer.emit
    total = emit(relax.op.add(layer.projected(x), layer.returned(hidden)))
    into, out, keep, new = (layer.gate(total, g) for g in range(4))

    def seen(gate: relax.Var, which: int, state: relax.Var) -> Any:
        if not layer.peepholes:
            return gate
        return emit(relax.op.add(gate, emit(relax.op.multiply(layer.peepholes[which], state))))

    into = layer.activated(0, seen(into, 0, cell))
    if layer.attributes.get("input_forget", 0):
        keep = emit(relax.op.subtract(relax.const(1, into.ty.dtype.dtype), into))
    else:
        keep = layer.activated(0, seen(keep, 2, cell))
    fresh = emit(relax.op.multiply(into, layer.activated(1, new)))
    cell = emit(relax.op.add(emit(relax.op.multiply(keep, cell)), fresh))
    out = layer.activated(0, seen(out, 1, cell))
    shown = emit(layer.functions[2](cell))
    return [emit(relax.op.multiply(out, shown)), cell]


def _gru_step(layer: _Layer, x: relax.Expr, states: Sequence[Any]) -> list[Any]:
    (hidden,) = states
    emit, given, kept = layer.emit, layer.projected(x), layer.returned(hidden)
    sums = [emit(relax.op.add(layer.gate(given, g), layer.gate(kept, g))) for g in range(2)]
    update, reset = (layer.activated(0, s) for s in sums)
    if layer.attributes.get("linear_before_reset", 0):
        old = emit(relax.op.multiply(reset, layer.gate(kept, 2)))
    else:
        seen = emit(relax.op.multiply(reset, hidden))
        old = emit(relax.op.matmul(seen, layer.gate(layer.recurrent, 2)))
        for bias in layer.biases[1:]:
            old = emit(relax.op.add(old, layer.gate(bias, 2)))
    new = layer.activated(1, emit(relax.op.add(layer.gate(given, 2), old)))
    rest = emit(relax.op.subtract(relax.const(1, new.ty.dtype.dtype), update))
    first, second = relax.op.multiply(rest, new), relax.op.multiply(update, hidden)
    return [emit(relax.op.add(emit(first), emit(second)))]


def _rnn_step(layer: _Layer, x: relax.Expr, states: Sequence[Any]) -> list[Any]:
    total = layer.emit(relax.op.add(layer.projected(x), layer.returned(states[0])))
    return [layer.activated(0, total)]


@dataclass(frozen=True)
class _Kind:
    """The step, gates, states and default activations of an operator."""

    step: Step
    gates: int
    states: int
    functions: tuple[str, ...]


_KINDS = {
    "GRU": _Kind(_gru_step, 3, 1, ("sigmoid", "tanh")),
    "LSTM": _Kind(_lstm_step, 4, 2, ("sigmoid", "tanh", "tanh")),
    "RNN": _Kind(_rnn_step, 1, 1, ("tanh",)),
}


def recurrent(
    name: str, bb: relax.BlockBuilder, inputs: Sequence[Any], attributes: Mapping[str, Any]
) -> relax.Tuple:
    """Return the states of all steps, and the last states of all directions.

    Raises :class:`UnsupportedError` for sequences of different lengths and unusual activations.
    """
    kind, emit = _KINDS[name], bb.emit
    given = [*inputs, *[None] * (8 - len(inputs))]
    x, weight, returned, bias, lengths = given[:5]
    starts, peepholes = given[5 : 5 + kind.states], given[7] if name == "LSTM" else None
    batch_first = bool(attributes.get("layout", 0))
    if batch_first:
        x = emit(relax.op.permute_dims(x, [1, 0, 2]))
        starts = [_swapped(emit, s) for s in starts]
    steps, batch, _ = (int(extent) for extent in x.ty.shape)
    _check_lengths(name, lengths, steps)
    directions, hidden = int(weight.ty.shape[0]), int(returned.ty.shape[2])
    zero = relax.const(np.zeros((batch, hidden), str(x.ty.dtype.dtype)))
    parts = [element(emit, x, t) for t in range(steps)]
    made, last = [], []
    for d in range(directions):
        layer = _Layer(
            emit,
            emit(relax.op.permute_dims(element(emit, weight, d))),
            emit(relax.op.permute_dims(element(emit, returned, d))),
            _cuts(emit, bias, d, kind.gates * hidden),
            _cuts(emit, peepholes, d, hidden),
            _functions(name, attributes, d, kind.functions),
            attributes,
            hidden,
        )
        states = [zero if s is None else element(emit, s, d) for s in starts]
        backwards = attributes.get("direction", b"forward") == b"reverse" or d == 1
        results, states = _run(kind.step, layer, parts[::-1] if backwards else parts, states)
        made.append(results[::-1] if backwards else results)
        last.append(states)
    every = [emit(relax.op.stack([m[t] for m in made], axis=0)) for t in range(steps)]
    whole = [emit(relax.op.stack(every, axis=0))]
    whole += [emit(relax.op.stack([s[i] for s in last], axis=0)) for i in range(kind.states)]
    if batch_first:
        whole[0] = emit(relax.op.permute_dims(whole[0], [2, 0, 1, 3]))
        whole[1:] = [emit(relax.op.permute_dims(s, [1, 0, 2])) for s in whole[1:]]
    return relax.Tuple(whole)


def _run(
    step: Step, layer: _Layer, parts: Sequence[Any], states: list[Any]
) -> tuple[list[Any], list[Any]]:
    """Return the result of each step, and the last states."""
    results = []
    for part in parts:
        states = step(layer, part, states)
        results.append(states[0])
    return results, states


def _swapped(emit: Callable[[Any], Any], state: relax.Expr | None) -> Any:
    return None if state is None else emit(relax.op.permute_dims(state, [1, 0, 2]))


def _cuts(
    emit: Callable[[Any], Any], of: tvm.ir.GenericConst | None, row: int, size: int
) -> list[Any]:
    """Return a row of a matrix in parts of ``size``, each (1, size); empty without a matrix."""
    if of is None:
        return []
    whole = emit(relax.op.strided_slice(of, [0], [row], [row + 1]))
    count = int(of.ty.shape[1]) // size
    cuts = [(g * size, (g + 1) * size) for g in range(count)]
    return [emit(relax.op.strided_slice(whole, [1], [a], [b])) for a, b in cuts]


def _check_lengths(name: str, lengths: relax.Var | None, steps: int) -> None:
    if lengths is None:
        return
    constant = isinstance(lengths, tvm.ir.GenericConst)
    if not constant or (lengths.value.numpy() != steps).any():
        raise UnsupportedError(
            "sequences of different lengths are not supported; remove sequence_lens"
        )


def _functions(
    name: str, attributes: Mapping[str, Any], direction: int, usual: tuple[str, ...]
) -> list[Callable[[Any], Any]]:
    """Return the activations of a direction; those with parameters are refused."""
    given = [f.decode().lower() for f in attributes.get("activations", [])]
    names = given[direction * len(usual) : (direction + 1) * len(usual)] or list(usual)
    for function in names:
        if function not in _FUNCTIONS:
            raise UnsupportedError(
                f"activation {function} is not supported; use Relu, Sigmoid, Softsign or Tanh"
            )
    return [_FUNCTIONS[function] for function in names]
