"""Float expressions of one stored tensor and numbers, evaluated for each stored value."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.operators import RELAX
from tvm_serenity.operators.functions import between
from tvm_serenity.operators.sample_bounds import SampledLine, check_samples, sample_bounds
from tvm_serenity.operators.table_bounds import Real, check_table, either, nearest
from tvm_serenity.quantize import tables
from tvm_serenity.quantize.lookups import lookup16
from tvm_serenity.quantize.params import Affine
from tvm_serenity.relax.quantize_read import Leaf, RefusedError, Scope

Array = npt.NDArray[Any]


def _real(name: str) -> Callable[..., Array] | None:
    """Return the function on real numbers of an operator, from its record."""
    known = RELAX.get(name)
    return None if known is None else known.elements.real


EVERY = (-(1 << 15), 1 << 15)
"""The range of 16-bit values."""
_FARTHEST = 1.49
"""The largest error in steps whose rounding is off by at most one: 1.5, less float32 errors."""
_TABLES = ("LOGISTIC", "TANH")
"""Functions whose tables LiteRT fills by other code."""


def only_leaf(scope: Scope, expr: relax.Expr) -> Leaf | None:
    """Return the single stored tensor that ``expr`` maps elementwise, or None."""
    found: list[Leaf] = []
    if not _collect(scope, expr, found) or not found:
        return None
    first = found[0]
    same = all(leaf.expr.same_as(first.expr) and leaf.params == first.params for leaf in found)
    return first if same else None


def _collect(scope: Scope, expr: relax.Expr, found: list[Leaf]) -> bool:
    value = scope.look(expr)
    if not compat.is_call(value):
        constant = scope.constant(value)
        return constant is not None and constant.size == 1
    name = compat.op_name(value)
    if name == "relax.dequantize":
        try:
            found.append(scope.activation(value))
        except RefusedError:
            return False
        return True
    if name in ("relax.clip", "relax.nn.leakyrelu"):
        return _collect(scope, value.args[0], found)
    if _real(name) is None:
        return False
    return all(_collect(scope, argument, found) for argument in value.args)


def known(scope: Scope, expr: relax.Expr, dtype: str, rounding: str) -> tuple[str, float] | None:
    """Return operator kind and parameter if ``expr`` is a known function of a leaf, or None.

    ``dtype``: the type of both ends. Other expressions are evaluated and rounded directly, and so
    are all but LEAKY_RELU under the rounding of floats.
    """
    value = scope.look(expr)
    if scope.call(value.args[0], "relax.dequantize") is None:
        return None
    name = compat.op_name(value)
    facts = RELAX.get(name)
    if name == "relax.nn.leakyrelu":
        return "LEAKY_RELU", float(value.attrs.alpha)
    if facts is None or facts.integers.compute is None or not facts.maps or len(value.args) > 1:
        return None
    kind = facts.kinds[0]
    return (kind, 0.0) if kind in _TABLES and rounding != "float" else None


def table(scope: Scope, expr: relax.Expr, leaf: Leaf, result: Affine) -> Array:
    """Return the 256 stored results of ``expr``, evaluated in float32 and rounded."""

    def real(x: Array) -> Array:
        return _evaluated(scope, expr, x)

    with np.errstate(all="ignore"):
        made = tables.from_real(real, leaf.params, result)
        bounds = (nearest(how, leaf.params, result) for how in (real, _in_float32(real)))
        held = either(*bounds).limited(*result.limits)
        return check_table(_named(scope, expr), made, leaf.params, held)


def samples(scope: Scope, expr: relax.Expr, leaf: Leaf, result: Affine) -> Array:
    """Return 513 samples of ``expr`` over all 16-bit values, for interpolation.

    Raises :class:`RefusedError` if interpolation may be off by more than a step for some value,
    whatever the last places of another float function.
    """
    if (leaf.params.dtype, result.dtype) != ("int16", "int16"):
        raise RefusedError(f"a function of {leaf.params.dtype} that makes {result.dtype}")
    if leaf.params.zero_point or result.zero_point:
        raise RefusedError("int16 functions with a zero point are not supported")

    def exact(x: Array) -> Array:
        return np.broadcast_to(_evaluated(scope, expr, x), x.shape)

    real, scales = _in_float32(exact), (leaf.params.scale, result.scale)
    found = lookup16(real, scales)
    bounds = sample_bounds([exact, real], SampledLine(*scales))
    check_samples(_named(scope, expr), found, bounds)
    every = np.arange(*EVERY)
    with np.errstate(all="ignore"):
        wanted = real(every * np.float32(scales[0])).astype(np.float64) / np.float32(scales[1])
    off = np.abs(between(every, found) - np.clip(wanted, EVERY[0], EVERY[1] - 1))
    if not (off <= _FARTHEST).all():
        raise RefusedError(
            "int16 functions that are too steep or undefined between samples are not supported"
        )
    return found


def _in_float32(function: Real) -> Real:
    return lambda x: function(x.astype(np.float32))


def _named(scope: Scope, expr: relax.Expr) -> str:
    """Return the display name of the function that ``expr`` is."""
    name = compat.op_name(scope.look(expr)).removeprefix("relax.").removeprefix("nn.")
    return f"functions of one tensor that end in {name} are not supported"


def _evaluated(scope: Scope, expr: relax.Expr, x: Array) -> Array:
    value = scope.look(expr)
    if not compat.is_call(value):
        constant = scope.constant(value)
        assert constant is not None
        return np.asarray(constant, np.float32).reshape(())
    name = compat.op_name(value)
    if name == "relax.dequantize":
        return x
    function = _real(name)
    if function is not None:
        return function(*(_evaluated(scope, a, x) for a in value.args))
    first = _evaluated(scope, value.args[0], x)
    if name == "relax.clip":
        low, high = (compat.scalar(a) for a in value.args[1:3])
        return np.clip(first, low, high)
    assert name == "relax.nn.leakyrelu"
    return np.where(first > 0, first, np.float32(value.attrs.alpha) * first)
