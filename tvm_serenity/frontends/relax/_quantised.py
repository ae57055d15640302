"""Quantised TFLite operators as the integer kernels of LiteRT's reference.

TVM's importer writes them as float operators between ``dequantize`` and ``quantize``, which is
not what the operators are: MAXIMUM, NEG and FLOOR_DIV work on stored values and ignore scales,
comparisons bring both sides to steps of 1/256, functions of 8 bits are tables rounded in a way of
their own, those of 16 bits are interpolated. ``KINDS`` has what is made here, exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tflite
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels import fixed_pairs, normalise, pointwise, sixteen
from tvm_serenity.kernels.arithmetic import Requantise
from tvm_serenity.kernels.batch_matmul import BatchMatmul, batch_matmul
from tvm_serenity.quantize import lookups, tables
from tvm_serenity.quantize.fixed import multiplier
from tvm_serenity.quantize.params import Affine

_EIGHT = ("int8", "uint8")


@dataclass(frozen=True)
class Stored:
    """A tensor of an operator: its stored values, and how they are read."""

    expr: Any
    params: Affine
    shape: tuple[int, ...]

    @property
    def dtype(self) -> str:
        """The type of stored values."""
        return self.params.dtype


@dataclass(frozen=True)
class Scene:
    """An operator with quantised tensors; ``kind`` is its name."""

    converter: Any
    op: Any
    kind: str

    def inputs(self, first: int = 0) -> list[Stored]:
        """The inputs from ``first``, all of which are quantised."""
        return [self._stored(t, True) for t in self.converter.get_input_tensors(self.op)[first:]]

    def result(self) -> Stored:
        """The one output; it has no expression."""
        return self._stored(self.converter.get_output_tensors(self.op)[0], False)

    def _stored(self, wrapper: Any, given: bool) -> Stored:
        dtype = self.converter.get_tensor_type_str(wrapper.tensor.Type())
        params = wrapper.qnn_params
        shape = self.converter._get_relax_tensor_shape(wrapper)
        if params is None:
            raise UnsupportedError(f"quantised {self.kind} with a tensor that is not quantised")
        scale = np.asarray(params["scale"].value.numpy(), np.float32).reshape(-1)
        if scale.size != 1:
            raise UnsupportedError(f"{self.kind} of a tensor with a scale a channel")
        zero = int(params["zero_point"].value.numpy())
        expr = None
        if given:
            expr = self.converter.bb.normalize(self.converter.get_tensor_expr(wrapper))
            shape = tuple(int(extent) for extent in expr.ty.shape)
        return Stored(expr, Affine((float(scale[0]),), (zero,), dtype), shape)

    def options(self, table: Any) -> Any:
        """The operator's options, an instance of ``table``, or its defaults."""
        read, given = table(), self.op.BuiltinOptions()
        if given is None:
            return None
        read.Init(given.Bytes, given.Pos)
        return read

    def kernel(self, name: str, kernel: Any, *arguments: Any) -> Any:
        """Return the call of a kernel; arrays among the arguments become constants."""
        made = [compat.constant(a) if isinstance(a, np.ndarray) else a for a in arguments]
        made = [a if isinstance(a, relax.Var) else self._bound(a) for a in made]
        return self.converter.bb.emit(compat.call_kernel(self.converter.bb, kernel, name, made))

    def _bound(self, expr: Any) -> Any:
        return expr if compat.is_constant(expr) else self.converter.bb.emit(expr)

    def only(self, dtypes: tuple[str, ...], *tensors: Stored) -> None:
        """Refuse what LiteRT has no kernel for: tensors of other types, or of several."""
        found = dict.fromkeys(tensor.dtype for tensor in tensors)
        if len(found) > 1 or not set(found) <= set(dtypes):
            raise UnsupportedError(f"no {self.kind} of {' and '.join(found)} in LiteRT")

    def symmetric(self, *tensors: Stored) -> None:
        """Refuse 16-bit tensors with zero points, as LiteRT does."""
        if any(t.dtype == "int16" and t.params.zero_point for t in tensors):
            raise UnsupportedError(f"{self.kind} of int16 with a zero point")


def _function(
    eight: Callable[[Affine, Affine], Any] | None,
    sixteen_bits: Callable[[Scene, Stored, Stored], Any] | None,
    dtypes: tuple[str, ...],
) -> Callable[[Scene], Any]:
    """A function of one value: its 256 entries, and its kernel for 16 bits."""

    def convert(scene: Scene) -> Any:
        (source,), result = scene.inputs(), scene.result()
        scene.only(dtypes, source, result)
        if source.dtype == "int16":
            assert sixteen_bits is not None
            scene.symmetric(source, result)
            return sixteen_bits(scene, source, result)
        assert eight is not None
        return _looked_up(scene, source, eight(source.params, result.params), result)

    return convert


def _looked_up(scene: Scene, source: Stored, table: Any, result: Stored) -> Any:
    kernel = pointwise.lookup(source.shape, source.dtype, result.dtype)
    return scene.kernel("q_table", kernel, source.expr, np.asarray(table))


def _real(function: Callable[..., Any]) -> Callable[[Affine, Affine], Any]:
    return lambda source, result: lookups.lookup8(function, source, result)


def _sampled(
    function_of: Callable[[Affine, Affine], Any],
) -> Callable[[Scene, Stored, Stored], Any]:
    """A 16-bit function between 513 samples."""

    def convert(scene: Scene, source: Stored, result: Stored) -> Any:
        scales = (source.params.scale, result.params.scale)
        samples = lookups.lookup16(function_of(source.params, result.params), scales)
        return scene.kernel("q_samples", sixteen.interpolated(source.shape), source.expr, samples)

    return convert


def _log(_source: Affine, result: Affine) -> Any:
    low = result.limits[0]
    return lookups.log_or((low - result.zero_point) * float(np.float32(result.scale)))


def _rsqrt(_source: Affine, result: Affine) -> Any:
    return lookups.rsqrt_or(32767 * float(np.float32(result.scale)))


def _sigmoid(scene: Scene, source: Stored, result: Stored, kernel: Any, most: int) -> Any:
    if abs(result.params.scale * 32768 - 1) > 1e-3:
        raise UnsupportedError(f"{scene.kind} of int16 whose result is not in steps of 1/32768")
    factor, shift = lookups.sigmoid_multiplier(source.params.scale, most)
    made = kernel(source.shape, factor, shift)
    return scene.kernel("q_sigmoid", made, source.expr, lookups.sigmoid_samples())


def _relu(low: float, high: float | None, dtypes: tuple[str, ...]) -> Callable[[Scene], Any]:
    def wide(scene: Scene, source: Stored, result: Stored) -> Any:
        limits = lookups.limits(result.params, low, high)
        made = sixteen.rescaled(source.shape, source.params, result.params, *limits)
        return scene.kernel("q_relu", made, source.expr)

    return _function(lambda s, r: lookups.clamped(s, r, low, high), wide, dtypes)


def _leaky_relu(scene: Scene) -> Any:
    options = scene.options(tflite.LeakyReluOptions)
    alpha = float(options.Alpha()) if options is not None else 0.0

    def wide(scene: Scene, source: Stored, result: Stored) -> Any:
        made = sixteen.leaky_relu(source.shape, alpha, source.params, result.params)
        return scene.kernel("q_leaky_relu", made, source.expr)

    every = (*_EIGHT, "int16")
    return _function(lambda s, r: tables.leaky_relu(alpha, s, r), wide, every)(scene)


def _gelu(scene: Scene) -> Any:
    options = scene.options(tflite.GeluOptions)
    near = options is not None and bool(options.Approximate())
    function = lookups.gelu_by_tanh if near else lookups.gelu
    every = (*_EIGHT, "int16")
    return _function(_real(function), _sampled(lambda s, r: function), every)(scene)


def _absolute16(scene: Scene, source: Stored, result: Stored) -> Any:
    made = sixteen.absolute(source.shape, source.params, result.params)
    return scene.kernel("q_abs", made, source.expr)


def _square_root16(scene: Scene, source: Stored, result: Stored) -> Any:
    made = sixteen.square_root(source.shape, source.params, result.params)
    return scene.kernel("q_sqrt", made, source.expr)


def _hard_swish(source: Affine, result: Affine) -> Any:
    if np.float32(source.scale) / np.float32(128) > np.float32(result.scale):
        raise UnsupportedError("HARD_SWISH to a scale of less than 1/128 of its input's")
    return tables.hard_swish(source, result)


def _on_stored(operator: Any, dtypes: tuple[str, ...]) -> Callable[[Scene], Any]:
    """An operator that LiteRT applies to stored values as they are."""

    def convert(scene: Scene) -> Any:
        inputs, result = scene.inputs(), scene.result()
        scene.only(dtypes, *inputs, result)
        return operator(*(tensor.expr for tensor in inputs))

    return convert


def _pair(scene: Scene, dtypes: tuple[str, ...], table: Any = None) -> tuple[Any, list[Any]]:
    """Two operands with the result they make and its limits, and their expressions."""
    (first, second), result = scene.inputs(), scene.result()
    scene.only(dtypes, first, second, result)
    low, high = result.params.limits
    options = None if table is None else scene.options(table)
    activation = 0 if options is None else int(options.FusedActivationFunction())
    if activation:
        names = {1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
        if activation not in names:
            raise UnsupportedError(f"quantised {scene.kind} with activation {activation}")
        low, high = lookups.limits(result.params, *names[activation])
    pair = pointwise.Pair(
        (first.shape, second.shape), (first.params, second.params), result.params, low, high
    )
    return pair, [first.expr, second.expr]


def _two(
    name: str, made: Callable[[pointwise.Pair], Any], dtypes: tuple[str, ...], table: Any = None
) -> Callable[[Scene], Any]:
    def convert(scene: Scene) -> Any:
        pair, arguments = _pair(scene, dtypes, table)
        return scene.kernel(name, made(pair), *arguments)

    return convert


def _prelu(scene: Scene) -> Any:
    (source, alpha), result = scene.inputs(), scene.result()
    scene.only(_ALL, source, result)
    scene.only(("int8",) if source.dtype == "int16" else (source.dtype,), alpha)
    pair = pointwise.Pair(
        (source.shape, alpha.shape), (source.params, alpha.params), result.params, 0, 0
    )
    return scene.kernel("q_prelu", fixed_pairs.prelu(pair), source.expr, alpha.expr)


def _selected(scene: Scene) -> Any:
    """SELECT and SELECT_V2 of stored values; the condition is boolean."""
    condition, *_ = scene.converter.get_input_tensors(scene.op)
    first, second = scene.inputs(1)
    scene.only((*_EIGHT, "int16"), first, second, scene.result())
    expr = scene.converter.get_tensor_expr(condition)
    return selected(scene.converter, scene.kind, expr, first.expr, second.expr)


def selected(converter: Any, kind: str, condition: Any, first: Any, second: Any) -> Any:
    """Return values of ``first`` or ``second``; a condition of SELECT may be one a row."""
    condition, first = (converter.bb.normalize(e) for e in (condition, first))
    shape, rows = [int(e) for e in first.ty.shape], [int(e) for e in condition.ty.shape]
    if kind == "SELECT" and len(rows) == 1 and len(shape) > 1:
        condition = relax.op.reshape(condition, (*rows, *[1] * (len(shape) - 1)))
    return relax.op.where(condition, first, second)


def _embedding(scene: Scene) -> Any:
    """EMBEDDING_LOOKUP: rows of stored values, as they are stored."""
    indices = scene.converter.get_input_tensors(scene.op)[0]
    (rows,), result = scene.inputs(1), scene.result()
    if rows.params != result.params:
        raise UnsupportedError(f"no {scene.kind} to another scale or type here")
    return relax.op.take(rows.expr, scene.converter.get_tensor_expr(indices), axis=0, mode="clip")


def _requantised(scene: Scene) -> Any:
    """QUANTIZE of 32-bit integers; the rest the importer writes in its own way."""
    source = scene.converter.get_input_tensors(scene.op)[0]
    if scene.converter.get_tensor_type_str(source.tensor.Type()) != "int32":
        return None
    (given,), result = scene.inputs(), scene.result()
    scene.only(("int8", "int16"), result)
    m = multiplier(given.params.scale / result.params.scale)
    limits = result.params.limits
    finish = Requantise(m, result.params.zero_point, *limits, result.dtype)
    kernel = pointwise.rescale(given.shape, given.params, finish)
    return scene.kernel("q_rescale", kernel, given.expr)


def _quotient(scene: Scene) -> Any:
    pair, arguments = _pair(scene, _EIGHT, tflite.DivOptions)
    constants = (*lookups.dividends(pair.sources[0]), *lookups.inverses(pair.sources[1]))
    return scene.kernel("q_div", fixed_pairs.quotient(pair), *arguments, *constants)


def _comparison(kind: str, operator: Any) -> Callable[[Scene], Any]:
    def convert(scene: Scene) -> Any:
        first, second = scene.inputs()
        scene.only((*_EIGHT, "int16"), first, second)
        if first.dtype == "int16" and kind not in ("EQUAL", "NOT_EQUAL"):
            return operator(first.expr, second.expr)
        sources = (first.params, second.params)
        if any(source.scale >= 1 for source in sources):
            raise UnsupportedError(f"{kind} of tensors whose scale is 1 or more")
        pair = pointwise.Pair((first.shape, second.shape), sources, first.params, 0, 1)
        kernel = fixed_pairs.comparison(kind, pair)
        return scene.kernel("q_compare", kernel, first.expr, second.expr)

    return convert


def _sum(kind: str, table: Any) -> Callable[[Scene], Any]:
    """ADD and SUB: of 16 bits here, of 8 bits as the importer writes them."""
    minus = kind == "SUB"

    def convert(scene: Scene) -> Any:
        if scene.result().dtype != "int16":
            return None
        pair, arguments = _pair(scene, ("int16",), table)
        options = scene.options(table)
        powers = options is None or bool(options.PotScaleInt16())
        shifts = _power_shifts(pair) if powers else None
        if shifts is not None:
            if min(shifts) < 0 or all(shifts):
                raise UnsupportedError(f"{kind} of int16 whose scales are no such powers of two")
            return scene.kernel("q_add", fixed_pairs.sum_of_powers(pair, shifts, minus), *arguments)
        first, second = (s.scale for s in pair.sources)
        twice = 2 * max(first, second)
        left, right = multiplier(first / twice), multiplier(second / twice)
        if minus:
            right = type(right)(right.value, right.shift, (-right.real[0],))
        out = multiplier(twice / ((1 << 15) * pair.result.scale))
        made = pointwise.add(pointwise.Sum(pair, left, right, out, 15))
        return scene.kernel("q_add", made, *arguments)

    return convert


def _power_shifts(pair: pointwise.Pair) -> tuple[int, int] | None:
    """The shifts to the right of operands whose scales, and the result's, are powers of two."""
    params = (*pair.sources, pair.result)
    logs = [float(np.log2(np.float32(p.scale))) for p in params]
    if any(abs(log - round(log)) >= 1e-3 for log in logs) or any(p.zero_point for p in params):
        return None
    first, second, made = (round(log) for log in logs)
    return made - first, made - second


def _rows(scene: Scene) -> tuple[Stored, Stored, tuple[int, int], Any]:
    (source,), result = scene.inputs(), scene.result()
    columns = source.shape[-1] if source.shape else 1
    rows = int(np.prod(source.shape)) // columns
    flat = scene.converter.bb.emit(relax.op.reshape(source.expr, (rows, columns)))
    return source, result, (rows, columns), flat


def _log_softmax(scene: Scene) -> Any:
    source, result, (rows, columns), flat = _rows(scene)
    scene.only(_EIGHT, source, result)
    scale = source.params.scale
    if result.params.scale != 1 / 16 or result.params.zero_point != result.params.limits[1]:
        raise UnsupportedError("LOG_SOFTMAX whose result is not stored in steps of 1/16 up to 0")
    steps, least = tables.differences(scale)
    m = multiplier(min(scale * (1 << 26), float((1 << 31) - 1)))
    reverse = multiplier(2.0 ** (31 - m.shift[0]) / m.value[0])
    kernel = normalise.log_softmax(rows, columns, source.dtype, reverse, least)
    powers = np.asarray(tables.softmax(scale).exponentials, np.int32)
    made = scene.kernel("q_log_softmax", kernel, flat, powers, steps.astype(np.int32))
    return relax.op.reshape(made, source.shape)


def _l2_normalised(scene: Scene) -> Any:
    source, result, (rows, columns), flat = _rows(scene)
    scene.only(_EIGHT, source, result)
    if result.params.scale != 1 / 128 or result.params.zero_point != result.params.limits[0] + 128:
        raise UnsupportedError("L2_NORMALIZATION whose result is not stored in steps of 1/128")
    zero = source.params.zero_point
    made = scene.kernel("q_l2", normalise.l2_normalised(rows, columns, source.dtype, zero), flat)
    return relax.op.reshape(made, source.shape)


def _softmax(scene: Scene) -> Any:
    """SOFTMAX of 16 bits, and of 8 bits in LiteRT's fixed point with its beta."""
    source, result, (rows, columns), flat = _rows(scene)
    options = scene.options(tflite.SoftmaxOptions)
    beta = float(options.Beta()) if options is not None else 1.0
    steps = {"int16": 1 << 16, "int8": 256, "uint8": 256}.get(result.dtype)
    sixteen_bits = source.dtype == "int16"
    if steps is None or (sixteen_bits and result.dtype != "int16"):
        raise UnsupportedError(f"no SOFTMAX of {source.dtype} to {result.dtype} in LiteRT")
    steps, least = (32768, 0) if sixteen_bits else (steps, result.params.limits[0])
    if abs(result.params.scale * steps - 1) > 1e-3 or result.params.zero_point != least:
        raise UnsupportedError(f"SOFTMAX whose result is not stored in steps of 1/{steps} from 0")
    scene.symmetric(*((source, result) if sixteen_bits else ()))
    if sixteen_bits:
        range_ = 65535
        powers = lookups.lookup16(np.exp, (10.0 / range_, 2.0 / range_), (32767, 0), np.float64)
        inverses = lookups.lookup16(
            lambda x: 1.0 / (1.0 + x), (1.0 / range_, 2.0 / range_), (-32768, 0), np.float64
        )
        scale = float(np.float32(source.params.scale) * np.float32(beta))
        kernel = normalise.softmax16(rows, columns, scale)
        made = scene.kernel("q_softmax", kernel, flat, powers, inverses)
    else:
        kernel = pointwise.softmax(rows, columns, source.dtype, result.dtype)
        table = np.asarray(tables.softmax(source.params.scale, beta).exponentials, np.int32)
        made = scene.kernel("q_softmax", kernel, flat, table)
    return relax.op.reshape(made, source.shape)


def _batch_matmul(scene: Scene) -> Any:
    (first, second), result = scene.inputs(), scene.result()
    scene.only(("int8", "int16"), first, result)
    scene.only(("int8", "int16") if first.dtype == "int16" else ("int8",), second)
    if first.dtype == "int16":
        scene.symmetric(first, second, result)
    options = scene.options(tflite.BatchMatMulOptions)
    adjoint = (False, False) if options is None else (bool(options.AdjX()), bool(options.AdjY()))
    spec = BatchMatmul(
        (first.shape, second.shape), adjoint, (first.params, second.params), result.params
    )
    return scene.kernel("q_matmul", batch_matmul(spec), first.expr, second.expr)


_ALL = (*_EIGHT, "int16")
_SIGNED = ("int8", "int16")
KINDS: dict[str, Callable[[Scene], Any]] = {
    "ABS": _function(lookups.absolute, _absolute16, _SIGNED),
    "ADD": _sum("ADD", tflite.AddOptions),
    "BATCH_MATMUL": _batch_matmul,
    "DIV": _quotient,
    "ELU": _function(_real(lookups.elu), None, ("int8",)),
    "EMBEDDING_LOOKUP": _embedding,
    "EQUAL": _comparison("EQUAL", relax.op.equal),
    "EXP": _function(_real(lookups.exp), _sampled(lambda s, r: lookups.exp), _SIGNED),
    "FLOOR_DIV": _on_stored(relax.op.floor_divide, _SIGNED),
    "FLOOR_MOD": _on_stored(relax.op.floor_mod, _SIGNED),
    "GELU": _gelu,
    "GREATER": _comparison("GREATER", relax.op.greater),
    "GREATER_EQUAL": _comparison("GREATER_EQUAL", relax.op.greater_equal),
    "HARD_SWISH": _function(_hard_swish, None, _EIGHT),
    "L2_NORMALIZATION": _l2_normalised,
    "LEAKY_RELU": _leaky_relu,
    "LESS": _comparison("LESS", relax.op.less),
    "LESS_EQUAL": _comparison("LESS_EQUAL", relax.op.less_equal),
    "LOG": _function(lambda s, r: lookups.lookup8(_log(s, r), s, r), _sampled(_log), _SIGNED),
    "LOGISTIC": _function(
        _real(lookups.logistic), lambda c, s, r: _sigmoid(c, s, r, sixteen.logistic, 0), _ALL
    ),
    "LOG_SOFTMAX": _log_softmax,
    "MAXIMUM": _on_stored(relax.op.maximum, _ALL),
    "MINIMUM": _on_stored(relax.op.minimum, _ALL),
    "NEG": _on_stored(relax.op.negative, _SIGNED),
    "NOT_EQUAL": _comparison("NOT_EQUAL", relax.op.not_equal),
    "PRELU": _prelu,
    "QUANTIZE": _requantised,
    "RELU": _relu(0.0, None, _ALL),
    "RELU6": _relu(0.0, 6.0, _ALL),
    "RELU_0_TO_1": _relu(0.0, 1.0, _EIGHT),
    "RELU_N1_TO_1": _relu(-1.0, 1.0, _EIGHT),
    "RSQRT": _function(lookups.inverse_root, _sampled(_rsqrt), _SIGNED),
    "SELECT": _selected,
    "SELECT_V2": _selected,
    "SOFTMAX": _softmax,
    "SQRT": _function(lookups.square_root, _square_root16, _SIGNED),
    "SQUARED_DIFFERENCE": _two("q_squared", fixed_pairs.squared_difference, ("int8",)),
    "SUB": _sum("SUB", tflite.SubOptions),
    "TANH": _function(
        _real(lookups.tanh), lambda c, s, r: _sigmoid(c, s, r, sixteen.tanh, 1), _ALL
    ),
}
"""What makes each kind; None from one of them: the importer's own form is exact."""
REFUSED = frozenset(["ATAN2", "CEIL", "COS", "FLOOR", "POW", "ROUND", "SIN", "TAN"])
"""Kinds that TVM's importer takes with quantised tensors and LiteRT does not."""
