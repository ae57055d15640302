"""SVDF: a temporal filter whose memory is a state of the model.

    state[b, f] <- state[b, f, 1:], sum_i x[b, i] * feature[f, i]
    y[b, u]      = activation(bias[u] + sum over f of unit u, m of state[b, f, m] * time[f, m])

The state comes in as a parameter of ``main`` and goes out as a result.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.dynamic_records import DynamicDense
from tvm_serenity.kernels.records import Dense, FilterSum, Requantise
from tvm_serenity.operators import dynamic_range as dynamic
from tvm_serenity.operators.parts import IntegerMeaning, OnTheFly, PlainMeaning, StateUse
from tvm_serenity.operators.plain import activated
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import ALL, Array, Calls, Expr, Scene, Shape, Stored
from tvm_serenity.operators.weighted import bias_of, folded, narrow, of_one_scale, requantised
from tvm_serenity.quantize.fixed import multiplier

_SOURCE, _FEATURE, _TIME, _BIAS, _STATE = range(5)
_RANK, _ACTIVATION, _ASYMMETRIC = range(3)
_RELU = 1


Spec = TypeVar("Spec", Dense, FilterSum)
"""A dense layer if all units read the same inputs, else sums of each unit's own."""


@dataclass(frozen=True, eq=False)
class Weighting(Generic[Spec]):
    """Weighted sums; ``weights`` has shape (units, inputs)."""

    spec: Spec
    weights: Array
    bias: npt.NDArray[np.int32]


@dataclass(frozen=True)
class Svdf:
    """An SVDF layer: ``newest`` computes the last column of the state, ``units`` the result."""

    batch: int
    filters: int
    memory: int
    newest: Weighting[Dense]
    units: Weighting[FilterSum]


def _read(scene: Scene) -> Svdf:
    source, state, result = scene.stored(_SOURCE), scene.stored(_STATE), scene.result()
    scene.only(("int8",), source, result)
    feature, time = (of_one_scale(scene, operand, ALL) for operand in (_FEATURE, _TIME))
    (filters, memory), rank = time[0].shape, _rank(scene)
    batch, units = source.shape[0], filters // rank
    spread = time[0].reshape(units, rank * memory)
    if scene.options.u8(_ACTIVATION) > _RELU:
        raise UnsupportedError("LiteRT does not support quantised SVDF with this activation")
    limits = result.params.limits  # LiteRT requires RELU but does not apply it
    bias = bias_of(scene, _BIAS, units)
    least, most = state.params.limits
    # TFLM limits the value before it adds the zero point, and lets the sum wrap around.
    kept = (least + state.zero, most + state.zero) if state.dtype == "int8" else (least, most)
    no_bias = np.zeros(filters, np.int64)

    def dense(units: int, inputs: int, dtypes: tuple[str, str], finish: Requantise) -> Dense:
        return Dense(batch, inputs, units, *dtypes, 0, finish)

    def sums(units: int, inputs: int, dtypes: tuple[str, str], finish: Requantise) -> FilterSum:
        return FilterSum(batch, units, inputs, *dtypes, finish)

    newest = _weighting(scene, source, feature, state, kept, no_bias, dense)
    of_states = _weighting(scene, state, (spread, time[1]), result, limits, bias, sums)
    return Svdf(batch, filters, memory, newest, of_states)


def _rank(scene: Scene) -> int:
    filters, rank = scene.shape(_TIME)[0], scene.options.i32(_RANK)
    if rank < 1 or filters % rank:
        raise UnsupportedError(f"rank {rank} does not divide its {filters} filters")
    return rank


def _weighting(
    scene: Scene,
    source: Stored,
    weights: tuple[Array, float],
    result: Stored,
    limits: tuple[int, int],
    bias: npt.NDArray[np.int64],
    spec: Callable[[int, int, tuple[str, str], Requantise], Spec],
) -> Weighting[Spec]:
    """Return weighted sums; ``spec``: a function of units, inputs, types and rounding."""
    data, scale = np.ascontiguousarray(weights[0]), weights[1]
    m = multiplier(source.scale * scale / result.scale)
    finish = Requantise(m, result.zero, *limits, result.dtype, scene.rounding)
    units, inputs = data.shape
    made = spec(units, inputs, (source.dtype, str(data.dtype)), finish)
    return Weighting(made, data, narrow(bias + folded(source, data, 1)))


def _compute(op: Svdf, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.convolution import dense
    from tvm_serenity.kernels.svdf import filters

    batch, read, states = op.batch, op.newest.spec, op.units.spec
    given = calls.apply("reshape", values[_SOURCE], (batch, read.inputs))
    spread = np.ascontiguousarray(op.newest.weights.T)
    made = calls.kernel("q_dense", dense(read), given, spread, op.newest.bias)
    shape = (batch, op.filters, op.memory)
    flat = calls.leave(_STATE, _shifted(values[_STATE], made, shape, calls))
    held = calls.apply("reshape", flat, (batch, states.units, states.inputs))
    return calls.kernel("q_svdf", filters(states), held, op.units.weights, op.units.bias)


def _shifted(state: Expr, newest: Expr, shape: tuple[int, int, int], calls: Calls) -> Expr:
    """Return the state without its oldest column, with a new column at the end."""
    batch, filters, memory = shape
    new = calls.apply("reshape", newest, (batch, filters, 1))
    if memory > 1:
        old = calls.apply("reshape", state, shape)
        kept = calls.apply("strided_slice", old, axes=[2], begin=[1], end=[memory])
        new = calls.apply("concat", [kept, new], axis=2)
    return calls.apply("reshape", new, (batch, filters * memory))


def _reference(op: Svdf, *arrays: Array) -> tuple[Array, Array]:
    """``EvalIntegerSVDF``: return the result and the new state."""
    x, state = arrays[_SOURCE], arrays[_STATE].reshape(op.batch, op.filters, op.memory)
    made = _summed(op.newest, x.reshape(op.batch, 1, -1))
    state = np.concatenate([state[:, :, 1:], made[:, :, None]], axis=2)
    result = _summed(op.units, state.reshape(op.batch, *op.units.weights.shape))
    return result, state.reshape(op.batch, -1)


def _summed(op: Weighting[Spec], values: Array) -> Array:
    total = (values.astype(np.int64) * op.weights.astype(np.int64)).sum(-1)
    return requantised(total + op.bias, op.spec.requantise)


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return the layer in floats, also for tensors that are stored as integers.

    TVM's importer neither updates the state before weighting it nor returns it.
    """
    filters, memory = scene.shape(_TIME)
    batch, columns = scene.shape(_SOURCE)[0], scene.shape(_FEATURE)[1]
    read = calls.real(_SOURCE, values[_SOURCE])
    read = calls.apply("reshape", read, (batch, 1, columns))
    feature = calls.real(_FEATURE, values[_FEATURE])
    newest = _real_sums(read, feature, (1, filters, columns), calls)
    shape = (batch, filters, memory, _rank(scene))
    time = calls.real(_TIME, values[_TIME])
    total = _weighted_state(calls.stored(newest, _STATE), time, values[_STATE], shape, calls)
    if values[_BIAS] is not None:
        total = calls.apply("add", total, calls.real(_BIAS, values[_BIAS]))
    return calls.stored(activated(calls, total, scene.options.u8(_ACTIVATION)))


def _real_sums(value: Expr, weights: Expr, shape: Shape, calls: Calls) -> Expr:
    held = calls.apply("reshape", weights, shape)
    return calls.apply("sum", calls.apply("multiply", value, held), axis=[-1])


def _weighted_state(
    newest: Expr, time: Expr, state: Expr, shape: tuple[int, int, int, int], calls: Calls
) -> Expr:
    """Return the sums over a state that includes ``newest``.

    ``shape``: batch, filters, memory and rank.
    """
    batch, filters, memory, rank = shape
    flat = calls.leave(_STATE, _shifted(state, newest, (batch, filters, memory), calls))
    units, taps = filters // rank, rank * memory
    held = calls.apply("reshape", calls.real(_STATE, flat), (batch, units, taps))
    return _real_sums(held, time, (1, units, taps), calls)


@dataclass(frozen=True, eq=False)
class SvdfOnTheFly:
    """A float SVDF layer with 8-bit ``feature`` weights [inputs, filters] and float ``time``.

    ``shape``: batch, filters, memory and rank.
    """

    spec: DynamicDense
    feature: Array
    scales: dynamic.Floats
    time: dynamic.Floats
    shape: tuple[int, int, int, int]
    activation: int


def _read_dynamic(scene: Scene) -> SvdfOnTheFly | None:
    found, time = dynamic.weights_of(scene, _FEATURE, 0), scene.operands[_TIME]
    if found is None or scene.dtype(_SOURCE) != "float32" or time is None or time.values is None:
        return None
    (feature, scales), held = found, np.asarray(time.values)
    if time.params is not None:
        if len(time.params.scales) != 1 or time.params.zero_point:
            return None
        held = held.astype(np.float32) * np.float32(time.params.scale)
    (batch, inputs), (filters, memory) = scene.shape(_SOURCE), held.shape
    asymmetric = bool(scene.options.u8(_ASYMMETRIC))
    spec = DynamicDense(batch, inputs, filters, asymmetric, scales.size, False, None)
    shape = (batch, filters, memory, _rank(scene))
    data = np.ascontiguousarray(feature.T)
    return SvdfOnTheFly(spec, data, scales, held, shape, scene.options.u8(_ACTIVATION))


def _compute_dynamic(op: SvdfOnTheFly, values: Sequence[Expr], calls: Calls) -> Expr:
    newest = dynamic.layer(op.spec, values[_SOURCE], (op.feature, op.scales, None), calls)
    total = _weighted_state(newest, op.time, values[_STATE], op.shape, calls)
    if values[_BIAS] is not None:
        total = calls.apply("add", total, values[_BIAS])
    return activated(calls, total, op.activation)


OPERATORS = (
    Operator(
        kinds=("SVDF",),
        state=StateUse(inputs=(_STATE,)),
        numbers=PlainMeaning(form=_plain, stored=True),
        integers=IntegerMeaning(
            read=_read,
            compute=_compute,
            reference=_reference,
            dynamic=OnTheFly(_read_dynamic, _compute_dynamic),
            in_float=True,
        ),
    ),
)
