"""FULLY_CONNECTED: a dense layer, rounded once in float64 as in LiteRT's reference kernel."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.dynamic_records import DynamicDense
from tvm_serenity.kernels.records import Dense, Requantise
from tvm_serenity.operators import dynamic_range as dynamic
from tvm_serenity.operators.extents import Extents
from tvm_serenity.operators.needs import Need, Seen, rowwise
from tvm_serenity.operators.parts import (
    IntegerMeaning,
    LayerFacts,
    OnTheFly,
    PlainMeaning,
    Rows,
    ShapeMeaning,
    Storage,
    Sums,
)
from tvm_serenity.operators.plain import activated
from tvm_serenity.operators.record import Operator, no_scratch
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene, Shape, reshaped
from tvm_serenity.operators.weighted import (
    WeightedLayer,
    filters_of,
    layer_of,
    requantised,
    summable,
)
from tvm_serenity.quantize.doubles import exact_single
from tvm_serenity.quantize.fixed import multiplier

_SOURCE, _WEIGHTS, _BIAS = range(3)
_ACTIVATION, _KEEP_DIMS, _ASYMMETRIC = 0, 2, 3


@dataclass(frozen=True, eq=False)
class FullyConnected:
    """Rows of inputs times ``weights`` [inputs, units]; ``bias`` includes the zero point."""

    spec: Dense
    source: Shape
    made: Shape
    weights: Array
    bias: npt.NDArray[np.int32]


def _read(scene: Scene) -> FullyConnected | None:
    if scene.is_float(_SOURCE):  # only its weights are quantised
        return None
    source, result = scene.stored(_SOURCE), scene.result()
    summable(scene.kind, source, result)
    scene.symmetric(source, result)
    filters = filters_of(scene, _WEIGHTS, 0)
    if filters.data.ndim != 2:
        raise UnsupportedError(
            f"its weights have shape {list(filters.data.shape)}; expected two axes"
        )
    source_filters = replace(filters, data=np.ascontiguousarray(filters.data.T))
    layer = layer_of(scene, source, source_filters, (_BIAS, _ACTIVATION))
    return dense_of(layer, result.shape)


def dense_of(layer: WeightedLayer, made: Shape) -> FullyConnected:
    """Return the dense layer with weights [inputs, units] and a result of shape ``made``."""
    source, data = layer.source, layer.filters.data
    inputs, units = data.shape
    rows, rest = divmod(int(np.prod(source.shape)), inputs)
    if rest:
        raise UnsupportedError(
            f"its input of shape {list(source.shape)} cannot be split into rows of {inputs}"
        )
    spec = Dense(
        rows,
        inputs,
        units,
        source.dtype,
        str(data.dtype),
        layer.filters.zero,
        _rounded_once(layer),
    )
    return FullyConnected(spec, source.shape, made, data, layer.folded_bias())


def _rounded_once(layer: WeightedLayer) -> Requantise:
    """Return the requantisation in float64, or in integers that give the same results."""
    reals, result, (low, high) = layer.multipliers(False), layer.result, layer.limits
    if layer.rounding != "tflite":
        return layer.finish(reals)
    found = exact_single(reals, low - result.zero, high - result.zero)
    made = multiplier(reals) if found is None else found
    how = "double" if found is None else "single"
    return Requantise(made, result.zero, low, high, result.dtype, how)


def _compute(op: FullyConnected, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.convolution import dense

    given = reshaped(values[_SOURCE], op.source, (op.spec.rows, op.spec.inputs), calls)
    constants = (op.weights, op.bias, *op.spec.requantise.arrays())
    made = calls.kernel("q_dense", dense(op.spec), given, *constants)
    return reshaped(made, (op.spec.rows, op.spec.units), op.made, calls)


def _reference(op: FullyConnected, x: Array, *_constants: Array) -> Array:
    rows = x.reshape(op.spec.rows, op.spec.inputs).astype(np.int64)
    total = rows @ (op.weights.astype(np.int64) - op.spec.weight_zero) + op.bias
    return requantised(total, replace(op.spec.requantise, rounding="double")).reshape(op.made)


def _plain(scene: Scene, values: Sequence[Expr], calls: Calls) -> Expr:
    """Return the layer in floats, also for tensors stored as integers.

    TVM's importer does not flatten the input.
    """
    (units, columns), shape = scene.shape(_WEIGHTS), scene.shape(_SOURCE)
    rows = int(np.prod(shape)) // columns
    weights = values[_WEIGHTS]
    if not scene.is_float(_SOURCE):
        weights = calls.real(_WEIGHTS, weights)
    given = reshaped(calls.real(_SOURCE, values[_SOURCE]), shape, (rows, columns), calls)
    made = calls.apply("matmul", given, calls.apply("permute_dims", weights, [1, 0]))
    if len(values) > _BIAS and values[_BIAS] is not None:
        made = calls.apply("add", made, _real_bias(scene, values[_BIAS], calls))
    made = calls.stored(activated(calls, made, scene.options.u8(_ACTIVATION)))
    return reshaped(made, (rows, units), scene.results[0].shape, calls)


def _real_bias(scene: Scene, value: Expr, calls: Calls) -> Expr:
    """Return the bias in floats; a bias without a scale has the scale of the sums."""
    found, weights = scene.operands[_BIAS], scene.operands[_WEIGHTS]
    if scene.is_float(_SOURCE) or found is None or weights is None:
        return value
    if found.params is not None or weights.params is None:
        return calls.real(_BIAS, value)
    steps = np.float32(scene.stored(_SOURCE).scale) * np.asarray(weights.params.scales, np.float32)
    return calls.apply("multiply", calls.apply("astype", value, "float32"), steps)


@dataclass(frozen=True, eq=False)
class DenseOnTheFly:
    """Rows of floats times 8-bit ``weights`` [inputs, units], with scale and bias per unit."""

    spec: DynamicDense
    source: Shape
    made: Shape
    weights: Array
    scales: dynamic.Floats
    bias: dynamic.Floats | None
    activation: int


def _read_dynamic(scene: Scene) -> DenseOnTheFly | None:
    found = dynamic.weights_of(scene, _WEIGHTS, 0)
    if found is None or scene.dtype(_SOURCE) != "float32":
        return None
    (weights, scales), shape = found, scene.shape(_SOURCE)
    units, inputs = weights.shape
    rows, rest = divmod(int(np.prod(shape)), inputs)
    if rest:
        raise UnsupportedError(
            f"its input of shape {list(shape)} cannot be split into rows of {inputs}"
        )
    bias, activation = dynamic.bias_of(scene, _BIAS), scene.options.u8(_ACTIVATION)
    limits = dynamic.limits_of(activation)
    asymmetric = bool(scene.options.u8(_ASYMMETRIC))
    spec = DynamicDense(rows, inputs, units, asymmetric, scales.size, bias is not None, limits)
    data = np.ascontiguousarray(weights.T)
    made = scene.results[0].shape
    return DenseOnTheFly(spec, shape, made, data, scales, bias, 0 if limits else activation)


def _compute_dynamic(op: DenseOnTheFly, values: Sequence[Expr], calls: Calls) -> Expr:
    spec = op.spec
    given = reshaped(values[_SOURCE], op.source, (spec.rows, spec.inputs), calls)
    made = dynamic.layer(spec, given, (op.weights, op.scales, op.bias), calls)
    made = activated(calls, made, op.activation)
    return reshaped(made, (spec.rows, spec.units), op.made, calls)


def _reference_dynamic(op: DenseOnTheFly, x: Array, *_constants: Array) -> Array:
    """``EvalHybridDense``."""
    rows = x.reshape(op.spec.rows, op.spec.inputs)
    whole, scale = dynamic.quantised_reference(rows, op.spec.asymmetric)
    total = (whole @ op.weights.astype(np.int64)).astype(np.float32)
    made = dynamic.finished(total * (scale[:, None] * op.scales), op.bias, op.spec.limits)
    return (np.tanh(made) if op.activation else made).reshape(op.made)


def _shape(seen: Extents) -> Shape | None:
    if len(seen.shapes[_WEIGHTS]) != 2:
        return None
    units, width = seen.shapes[_WEIGHTS]
    if seen.options.u8(_KEEP_DIMS):
        return (*seen.shapes[_SOURCE][:-1], units)
    return (math.prod(seen.shapes[_SOURCE]) // width, units)


def _by_rows(op: Seen) -> tuple[Need, ...]:
    """Return the rows that a dense layer of each row needs, such as one of each step of time."""
    if op.height == 1 or list(op.sources) != [op.height]:
        raise UnsupportedError(f"{op.kind} is computed row by row only if it keeps the rows")
    return (rowwise(op.height, op.height),)


OPERATORS = (
    Operator(
        kinds=("FULLY_CONNECTED",),
        shapes=ShapeMeaning(result=_shape),
        relax=("matmul",),
        layer=LayerFacts(sums=Sums(_SOURCE, _WEIGHTS, _BIAS)),
        library="convolution",
        rows=Rows(needs=_by_rows),
        storage=Storage(scratch=no_scratch),
        numbers=PlainMeaning(form=_plain, stored=True),
        integers=IntegerMeaning(
            read=_read,
            compute=_compute,
            reference=_reference,
            dynamic=OnTheFly(_read_dynamic, _compute_dynamic, _reference_dynamic),
            in_float=True,
        ),
    ),
)
