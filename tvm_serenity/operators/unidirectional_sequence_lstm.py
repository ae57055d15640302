"""UNIDIRECTIONAL_SEQUENCE_LSTM: an LSTM layer whose two states persist between runs.

int8 with int16 cells, as in LiteRT's "8x8_16" kernels: sums of each gate saturate at 16 bits, the
logistic function and tanh are gemmlowp's, cells have power-of-two scales. int16 as in TFLM, which
LiteRT lacks: 64-bit sums, interpolated functions. Peepholes, projections, normalisation and coupled
gates are refused by name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.dynamic_records import DynamicDense
from tvm_serenity.kernels.records import Gate, Lstm
from tvm_serenity.operators import dynamic_range as dynamic
from tvm_serenity.operators.logistic import logistic_reference, tanh_reference
from tvm_serenity.operators.parts import IntegerMeaning, OnTheFly, PlainMeaning, StateUse
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.recurrent import check_plain, lstm, lstm_of_floats
from tvm_serenity.operators.sample_bounds import check_sigmoid
from tvm_serenity.operators.scene import SIGNED, Array, Calls, Expr, Scene, Stored
from tvm_serenity.operators.weighted import MOST_WIDE_SHIFT, bias_of, folded, narrow, of_one_scale
from tvm_serenity.quantize import fixed16
from tvm_serenity.quantize.fixed import (
    Multiplier,
    divided_by_power,
    multiplier,
    scaled,
    scaled_wide,
)
from tvm_serenity.quantize.lookups import sigmoid_samples

_SOURCE, _WEIGHTS, _RECURRENT, _BIASES, _HIDDEN, _CELL = 0, 1, 5, 12, 18, 19
_PEEPHOLES, _PROJECTION, _NORMS = range(9, 12), range(16, 18), range(20, 24)
_CELL_CLIP, _PROJECTION_CLIP, _TIME_MAJOR, _ASYMMETRIC = 1, 2, 3, 4
_PRODUCT_HIDDEN = 4
"""The internal tensor with the quantisation of the product of output gate and cell."""
_GATE_SCALE, _PRODUCT_SCALE = 2.0**-12, 2.0**-30


@dataclass(frozen=True, eq=False)
class LstmLayer:
    """A layer with the weights of its gates: input, forget, cell, output."""

    spec: Lstm
    weights: Array
    recurrent: Array
    bias: npt.NDArray[np.int32]


def _read(scene: Scene) -> LstmLayer | None:
    if scene.is_float(_SOURCE):
        return None
    source, result = scene.stored(_SOURCE), scene.result()
    hidden, cell = scene.stored(_HIDDEN), scene.stored(_CELL)
    scene.only(SIGNED, source, hidden, result)
    _plain(scene)
    if cell.dtype != "int16":
        raise UnsupportedError(f"LiteRT does not support {scene.kind} with cells of {cell.dtype}")
    weights = [of_one_scale(scene, _WEIGHTS + g, ("int8",)) for g in range(4)]
    recurrent = [of_one_scale(scene, _RECURRENT + g, ("int8",)) for g in range(4)]
    units = recurrent[0][0].shape[0]
    gates, biases = [], []
    for g, ((w, scale), (r, r_scale)) in enumerate(zip(weights, recurrent, strict=True)):
        gates.append(Gate(_into_gate(source, scale), _into_gate(hidden, r_scale)))
        bias = bias_of(scene, _BIASES + g, units)
        biases.append((bias + folded(source, w, 1), folded(hidden, r, 1)))
    spec = _layer(scene, source, (hidden, cell), (gates[0], gates[1], gates[2], gates[3]), units)
    return LstmLayer(
        spec,
        np.stack([w for w, _ in weights]),
        np.stack([r for r, _ in recurrent]),
        narrow(np.stack([np.stack(part) for part in zip(*biases, strict=True)])),
    )


def _into_gate(source: Stored, scale: float) -> Multiplier:
    """Return the rescaling of sums to a gate's scale.

    TFLM multiplies the scales of 16-bit values in float.
    """
    if source.dtype != "int16":
        return multiplier(source.scale * scale / _GATE_SCALE)
    made = multiplier(float(np.float32(source.scale) * np.float32(scale)) / _GATE_SCALE)
    if made.shift[0] > MOST_WIDE_SHIFT:
        raise UnsupportedError(
            f"its sums would be shifted left by {made.shift[0]} bits; TFLM supports at most "
            f"{MOST_WIDE_SHIFT}"
        )
    return made


def _plain(scene: Scene) -> None:
    """Refuse inputs of LSTM variants that are not plain."""
    given = {i for i, operand in enumerate(scene.operands) if operand is not None}
    for what, operands in (
        ("peepholes", _PEEPHOLES),
        ("a projection", _PROJECTION),
        ("layer normalisation", _NORMS),
    ):
        if given & set(operands):
            raise UnsupportedError(f"quantised {scene.kind} with {what} is not supported")
    if not given >= {_WEIGHTS, _RECURRENT}:
        raise UnsupportedError(f"quantised {scene.kind} with coupled gates is not supported")


def _layer(
    scene: Scene,
    source: Stored,
    states: tuple[Stored, Stored],
    gates: tuple[Gate, Gate, Gate, Gate],
    units: int,
) -> Lstm:
    (hidden, cell), options = states, scene.options
    if len(source.shape) != 3:
        raise UnsupportedError(
            f"{scene.kind} needs an input of three axes, not of shape {list(source.shape)}"
        )
    time_major = bool(options.u8(_TIME_MAJOR))
    first, second, inputs = source.shape
    fraction, exponent = frexp(cell.scale)
    bits = 15 + exponent - 1
    if fraction != 0.5 or cell.zero or not 0 <= bits <= 11:
        raise UnsupportedError(
            f"{scene.kind} needs cells with a power-of-two scale and zero point 0, not scale "
            f"{cell.scale}"
        )
    clip = options.f32(_CELL_CLIP)
    wide = source.dtype == "int16"
    if wide:
        scene.symmetric(source, hidden)
    made = hidden if wide else _product_format(scene, hidden)
    return Lstm(
        second if time_major else first,
        first if time_major else second,
        inputs,
        units,
        time_major,
        gates,
        bits,
        int(min(max(clip / cell.scale, -32768), 32767)) if clip > 0 else 0,
        multiplier(_PRODUCT_SCALE / made.scale),
        made.zero,
        source.dtype,
    )


def _product_format(scene: Scene, hidden: Stored) -> Stored:
    """Return the quantisation of the product of output gate and cell, as the file states it."""
    found = (
        scene.intermediates[_PRODUCT_HIDDEN] if len(scene.intermediates) > _PRODUCT_HIDDEN else None
    )
    if found is None or found.params is None:
        raise UnsupportedError(
            f"quantised {scene.kind}: the file has no scale for the product of output gate and "
            "cell state; convert the model again"
        )
    return Stored(hidden.shape, found.params)


def _compute(op: LstmLayer, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels import lstm as kernels

    flat = (op.spec.batch, op.spec.units)
    states = [calls.apply("reshape", values[state], flat) for state in (_HIDDEN, _CELL)]
    samples = []
    if op.spec.dtype == "int16":
        samples = [check_sigmoid("UNIDIRECTIONAL_SEQUENCE_LSTM", sigmoid_samples())]
    constants = (op.weights, op.recurrent, op.bias, *samples)
    result, *left = calls.kernels(
        "q_lstm", kernels.lstm(op.spec), 3, values[_SOURCE], *constants, *states
    )
    for state, value in zip((_HIDDEN, _CELL), left, strict=True):
        calls.leave(state, value)
    return result


def _reference(op: LstmLayer, *arrays: Array) -> tuple[Array, Array, Array]:
    spec = op.spec
    x = arrays[_SOURCE].astype(np.int64)
    steps = x if spec.time_major else np.swapaxes(x, 0, 1)
    hidden = arrays[_HIDDEN].reshape(spec.batch, spec.units).astype(np.int64)
    cell = arrays[_CELL].reshape(spec.batch, spec.units).astype(np.int64)
    made, wide = [], spec.dtype == "int16"
    for step in steps:
        hidden, cell = (_of_int16 if wide else _stepped)(op, step, hidden, cell)
        made.append(hidden)
    whole = np.stack(made, axis=0 if spec.time_major else 1)
    return whole.astype(spec.dtype), hidden.astype(spec.dtype), cell.astype(np.int16)


def _stepped(op: LstmLayer, x: Array, hidden: Array, cell: Array) -> tuple[Array, Array]:
    """``CalculateLstmGateInteger8x8_16`` for four gates, then cells and the state."""
    spec, gates = op.spec, []
    for g, gate in enumerate(spec.gates):
        total = x @ op.weights[g].astype(np.int64).T + op.bias[0, g]
        value = _narrow(scaled(total, gate.inputs.value[0], gate.inputs.shift[0]))
        total = hidden @ op.recurrent[g].astype(np.int64).T + op.bias[1, g]
        value = _narrow(value + scaled(total, gate.state.value[0], gate.state.shift[0]))
        gates.append(fixed16.tanh(value, 3) if g == 2 else fixed16.logistic(value))
    into, forget, new, out = gates
    old = divided_by_power(forget * cell, 15).astype(np.int16).astype(np.int64)
    more = divided_by_power(into * new, 15 + spec.cell_bits).astype(np.int16).astype(np.int64)
    cell = _narrow(old + more)
    if spec.clip:
        cell = np.clip(cell, -spec.clip, spec.clip)
    product = out * fixed16.tanh(cell, spec.cell_bits)
    made = scaled(product, spec.hidden.value[0], spec.hidden.shift[0]) + spec.zero
    return np.clip(made, -128, 127), cell


def _of_int16(op: LstmLayer, x: Array, hidden: Array, cell: Array) -> tuple[Array, Array]:
    """``lstm_internal::LstmStep`` of TFLM for int16."""
    spec, gates = op.spec, []
    for g, gate in enumerate(spec.gates):
        parts = []
        for value, weights, bias, how in (
            (x, op.weights[g], op.bias[0, g], gate.inputs),
            (hidden, op.recurrent[g], op.bias[1, g], gate.state),
        ):
            total = value @ weights.astype(np.int64).T + bias
            parts.append(_narrow(scaled_wide(total, how.value[0], how.shift[0])))
        of = tanh_reference if g == 2 else logistic_reference
        gates.append(of(_narrow(parts[0] + parts[1]), (3, 0)).astype(np.int64))
    into, forget, new, out = gates
    kept = multiplier(2.0**-15), multiplier(2.0 ** -(15 + spec.cell_bits))
    pairs = zip((forget * cell, into * new), kept, strict=True)
    old, more = (_narrow(scaled(p, m.value[0], m.shift[0])) for p, m in pairs)
    cell = _narrow(old + more)
    if spec.clip:
        cell = np.clip(cell, -spec.clip, spec.clip)
    product = out * tanh_reference(cell, spec.cell_steps).astype(np.int64)
    return _narrow(scaled(product, spec.hidden.value[0], spec.hidden.shift[0])), cell


def _narrow(x: Array) -> Array:
    return np.clip(x, -32768, 32767)


@dataclass(frozen=True, eq=False)
class LstmOnTheFly:
    """A float layer with 8-bit weights [inputs, 4 units] and a scale per column.

    ``recurrent``: the weights of the state, which have no bias.
    """

    scene: Scene
    inputs: DynamicDense
    state: DynamicDense
    weights: tuple[Array, dynamic.Floats, dynamic.Floats]
    recurrent: tuple[Array, dynamic.Floats, None]


def _read_dynamic(scene: Scene) -> LstmOnTheFly | None:
    check_plain(scene.operands)
    found = [dynamic.weights_of(scene, _WEIGHTS + i, 0) for i in range(8)]
    if scene.dtype(_SOURCE) != "float32" or any(held is None for held in found):
        return None
    parts = [held for held in found if held is not None]
    biases = [dynamic.bias_of(scene, _BIASES + gate) for gate in range(4)]
    bias = np.concatenate([held for held in biases if held is not None])
    whole = [
        (
            np.ascontiguousarray(np.concatenate([w for w, _ in some]).T),
            np.concatenate([np.broadcast_to(scales, len(w)) for w, scales in some]),
        )
        for some in (parts[:4], parts[4:])
    ]
    (weights, scales), (recurrent, recurrent_scales) = whole
    batch = scene.shape(_HIDDEN)[0]
    asymmetric = bool(scene.options.u8(_ASYMMETRIC))
    units = weights.shape[1]
    return LstmOnTheFly(
        scene,
        DynamicDense(batch, weights.shape[0], units, asymmetric, units, True, None),
        DynamicDense(batch, recurrent.shape[0], units, asymmetric, units, False, None),
        (weights, scales, bias),
        (recurrent, recurrent_scales, None),
    )


def _compute_dynamic(op: LstmOnTheFly, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return the layer; its sums equal LiteRT's exactly, its float functions do not."""

    def gates(step: Expr, hidden: Expr) -> Sequence[Expr]:
        made = dynamic.layer(op.inputs, step, op.weights, calls)
        kept = dynamic.layer(op.state, hidden, op.recurrent, calls)
        parts = calls.apply("split", calls.apply("add", made, kept), 4, axis=1)
        return [parts[gate] for gate in range(4)]

    return lstm(op.scene, values, gates, calls)


OPERATORS = (
    Operator(
        kinds=("UNIDIRECTIONAL_SEQUENCE_LSTM",),
        numbers=PlainMeaning(form=lstm_of_floats),
        integers=IntegerMeaning(
            read=_read,
            compute=_compute,
            reference=_reference,
            dynamic=OnTheFly(_read_dynamic, _compute_dynamic),
        ),
        state=StateUse(inputs=(_HIDDEN, _CELL)),
    ),
)
