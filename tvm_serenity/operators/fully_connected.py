"""FULLY_CONNECTED: a dense layer, rounded once in float64 as LiteRT's reference kernel is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.records import Dense, Requantise
from tvm_serenity.operators.record import Operator, no_scratch
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene, Shape, Stored
from tvm_serenity.operators.weighted import (
    bias_of,
    filters_of,
    finish,
    folded,
    multipliers,
    narrow,
    requantised,
    summable,
)
from tvm_serenity.quantize.doubles import exact_single
from tvm_serenity.quantize.fixed import multiplier

_SOURCE, _WEIGHTS, _BIAS = range(3)
_ACTIVATION = 0


@dataclass(frozen=True, eq=False)
class FullyConnected:
    """Rows of inputs times ``weights`` [inputs, units]; ``bias`` holds the input's zero point."""

    spec: Dense
    source: Shape
    made: Shape
    weights: Array
    bias: npt.NDArray[np.int32]


def _read(scene: Scene) -> FullyConnected | None:
    if scene.is_float(_SOURCE):  # its weights alone are quantised
        return None
    source, result = scene.stored(_SOURCE), scene.result()
    summable(scene, source, result)
    filters = filters_of(scene, _WEIGHTS, 0)
    if filters.data.ndim != 2:
        raise UnsupportedError(f"weights of shape {list(filters.data.shape)}")
    data = np.ascontiguousarray(filters.data.T)
    inputs, units = data.shape
    rows, rest = divmod(int(np.prod(source.shape)), inputs)
    if rest:
        raise UnsupportedError(f"an input of shape {list(source.shape)} in rows of {inputs}")
    reals = multipliers(source, filters, result, False)
    bias = bias_of(scene, _BIAS, units) + folded(data, filters.zero, source)
    spec = Dense(
        rows,
        inputs,
        units,
        source.dtype,
        str(data.dtype),
        filters.zero,
        _rounded_once(scene, reals, result),
    )
    return FullyConnected(spec, source.shape, result.shape, data, narrow(bias))


def _rounded_once(scene: Scene, reals: Array, result: Stored) -> Requantise:
    """In float64, or in integers that are equal to that."""
    low, high = limits = scene.limits(result, _ACTIVATION)
    if scene.rounding != "tflite":
        return finish(scene, reals, result, limits)
    found = exact_single(reals, low - result.zero, high - result.zero)
    made = multiplier(reals) if found is None else found
    how = "double" if found is None else "single"
    return Requantise(made, result.zero, low, high, result.dtype, how)


def _compute(op: FullyConnected, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.convolution import dense

    given = values[_SOURCE]
    if op.source != (op.spec.rows, op.spec.inputs):
        given = calls.apply("reshape", given, (op.spec.rows, op.spec.inputs))
    constants = (op.weights, op.bias, *op.spec.requantise.arrays())
    made = calls.kernel("q_dense", dense(op.spec), given, *constants)
    if op.made == (op.spec.rows, op.spec.units):
        return made
    return calls.apply("reshape", made, op.made)


def _reference(op: FullyConnected, x: Array, *_constants: Array) -> Array:
    rows = x.reshape(op.spec.rows, op.spec.inputs).astype(np.int64)
    total = rows @ (op.weights.astype(np.int64) - op.spec.weight_zero) + op.bias
    finish_ = op.spec.requantise
    spec = Requantise(
        finish_.multiplier, finish_.zero_point, finish_.low, finish_.high, finish_.dtype, "double"
    )
    return requantised(total, spec).reshape(op.made)


OPERATORS = (
    Operator(
        kinds=("FULLY_CONNECTED",),
        scratch=no_scratch,
        read=_read,
        compute=_compute,
        reference=_reference,
        in_float=True,
    ),
)
