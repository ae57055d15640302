"""SVDF: a filter over time whose memory is a state of the model.

    state[b, f] <- state[b, f, 1:], sum_i x[b, i] * feature[f, i]
    y[b, u]      = activation(bias[u] + sum over f of unit u, m of state[b, f, m] * time[f, m])

The state comes in as a parameter of ``main`` and goes out as a result.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.records import FilterSum, Requantise
from tvm_serenity.operators.plain import activated
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import ALL, Array, Calls, Expr, Scene, Shape, Stored
from tvm_serenity.operators.weighted import bias_of, folded, narrow, of_one_scale, requantised
from tvm_serenity.quantize.fixed import multiplier

_SOURCE, _FEATURE, _TIME, _BIAS, _STATE = range(5)
_RANK, _ACTIVATION = 0, 1
_RELU = 1


@dataclass(frozen=True, eq=False)
class Weighting:
    """Sums of values that are weighted by ``weights`` (units, inputs)."""

    spec: FilterSum
    weights: Array
    bias: npt.NDArray[np.int32]


@dataclass(frozen=True)
class Svdf:
    """``newest`` makes the last column of the state, ``units`` the result from all of it."""

    batch: int
    filters: int
    memory: int
    newest: Weighting
    units: Weighting


def _read(scene: Scene) -> Svdf:
    source, state, result = scene.stored(_SOURCE), scene.stored(_STATE), scene.result()
    scene.only(("int8",), source, result)
    feature, time = (of_one_scale(scene, operand, ALL) for operand in (_FEATURE, _TIME))
    (filters, memory), rank = time[0].shape, _rank(scene)
    batch, units = source.shape[0], filters // rank
    spread = time[0].reshape(units, rank * memory)
    if scene.options.u8(_ACTIVATION) > _RELU:
        raise UnsupportedError("no quantised SVDF with this activation in LiteRT")
    limits = result.params.limits  # LiteRT asks for RELU and does not apply it
    bias = bias_of(scene, _BIAS, units)
    least, most = state.params.limits
    # TFLM limits the value before it adds the zero point, and lets the sum wrap around.
    kept = (least + state.zero, most + state.zero) if state.dtype == "int8" else (least, most)
    first = _weighting(scene, source, feature, state, kept, None, batch)
    last = _weighting(scene, state, (spread, time[1]), result, limits, bias, batch)
    return Svdf(batch, filters, memory, first, last)


def _rank(scene: Scene) -> int:
    filters, rank = scene.shape(_TIME)[0], scene.options.i32(_RANK)
    if rank < 1 or filters % rank:
        raise UnsupportedError(f"{filters} filters of rank {rank}")
    return rank


def _weighting(
    scene: Scene,
    source: Stored,
    weights: tuple[Array, float],
    result: Stored,
    limits: tuple[int, int],
    bias: npt.NDArray[np.int64] | None,
    batch: int,
) -> Weighting:
    data, scale = np.ascontiguousarray(weights[0]), weights[1]
    units, inputs = data.shape
    offset = np.zeros(units, np.int64) if bias is None else bias
    offset = offset + folded(source, data, 1)
    m = multiplier(source.scale * scale / result.scale)
    finish = Requantise(m, result.zero, *limits, result.dtype, scene.rounding)
    shared = bias is None and units > 1
    spec = FilterSum(batch, units, inputs, shared, source.dtype, str(data.dtype), finish)
    return Weighting(spec, data, narrow(offset))


def _compute(op: Svdf, values: Sequence[Expr], calls: Calls) -> Expr:
    batch, spec, inputs = op.batch, op.units.spec, op.newest.spec.inputs
    made = _weighted(op.newest, calls.apply("reshape", values[_SOURCE], (batch, 1, inputs)), calls)
    shape = (batch, op.filters, op.memory)
    flat = calls.leave(_STATE, _shifted(values[_STATE], made, shape, calls))
    held = calls.apply("reshape", flat, (batch, spec.units, spec.inputs))
    return _weighted(op.units, held, calls)


def _shifted(state: Expr, newest: Expr, shape: tuple[int, int, int], calls: Calls) -> Expr:
    """A state with its oldest column gone and a new one at the end."""
    batch, filters, memory = shape
    new = calls.apply("reshape", newest, (batch, filters, 1))
    if memory > 1:
        old = calls.apply("reshape", state, shape)
        kept = calls.apply("strided_slice", old, axes=[2], begin=[1], end=[memory])
        new = calls.apply("concat", [kept, new], axis=2)
    return calls.apply("reshape", new, (batch, filters * memory))


def _weighted(op: Weighting, values: Expr, calls: Calls) -> Expr:
    from tvm_serenity.kernels.svdf import filters

    return calls.kernel("q_svdf", filters(op.spec), values, op.weights, op.bias)


def _reference(op: Svdf, *arrays: Array) -> tuple[Array, Array]:
    """``EvalIntegerSVDF``: the result and the new state."""
    x, state = arrays[_SOURCE], arrays[_STATE].reshape(op.batch, op.filters, op.memory)
    made = _summed(op.newest, x.reshape(op.batch, 1, -1))
    state = np.concatenate([state[:, :, 1:], made[:, :, None]], axis=2)
    result = _summed(op.units, state.reshape(op.batch, *op.units.weights.shape))
    return result, state.reshape(op.batch, -1)


def _summed(op: Weighting, values: Array) -> Array:
    total = (values.astype(np.int64) * op.weights.astype(np.int64)).sum(-1)
    return requantised(total + op.bias, op.spec.requantise)


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """The same in floats, on tensors that are stored as integers too.

    TVM's importer neither updates the state before it is weighted nor returns it.
    """
    filters, memory = scene.shape(_TIME)
    batch, columns, rank = scene.shape(_SOURCE)[0], scene.shape(_FEATURE)[1], _rank(scene)

    def weighted(value: Expr, operand: int, shape: Shape) -> Expr:
        weights = calls.apply("reshape", calls.real(operand, values[operand]), shape)
        return calls.apply("sum", calls.apply("multiply", value, weights), axis=[-1])

    read = calls.real(_SOURCE, values[_SOURCE])
    read = calls.apply("reshape", read, (batch, 1, columns))
    newest = calls.stored(weighted(read, _FEATURE, (1, filters, columns)), _STATE)
    flat = calls.leave(_STATE, _shifted(values[_STATE], newest, (batch, filters, memory), calls))
    units, taps = filters // rank, rank * memory
    held = calls.apply("reshape", calls.real(_STATE, flat), (batch, units, taps))
    total = weighted(held, _TIME, (1, units, taps))
    if values[_BIAS] is not None:
        total = calls.apply("add", total, calls.real(_BIAS, values[_BIAS]))
    return calls.stored(activated(calls, total, scene.options.u8(_ACTIVATION)))


OPERATORS = (
    Operator(
        kinds=("SVDF",),
        states=(_STATE,),
        plain=_plain,
        stored=True,
        read=_read,
        compute=_compute,
        reference=_reference,
        in_float=True,
    ),
)
