"""Exponentials, error functions and similar functions as polynomials, for vector instructions.

TVM calls the C library for each number. In float32 (errors against float64, over the full range of
float32 arguments):

* ``exp``: ``2**n * (1 + r + r * r * Q(r))`` with ``|r| <= log(2) / 2``: error 1 unit in the last
  place, 2 for subnormal results (below 1.2e-38); infinite beyond the range of float32.
* ``erf`` and ``tanh``: ``x * P(x * x) / Q(x * x)`` up to the argument where the result rounds to 1:
  relative error 4e-7.
* ``sigmoid``: ``1 / (1 + exp(-x))``, as TVM lowers it.

NaN stays NaN. The coefficients are least-squares fits at 3,000 Chebyshev nodes, reweighted to
minimise the largest relative error. Arguments are named, so that nothing is computed twice.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import tirx

from tvm_serenity.kernels.arithmetic import f32, i32
from tvm_serenity.kernels.nodes import mapped

LEAST, MOST = -104.0, 89.0
"""``exp`` is 0 below and infinite above these arguments."""
EXP = (0.49999994, 0.166665196, 0.0416683927, 0.00836878084, 0.00138144672)
HIGH = 355 / 512
"""The leading bits of log(2), whose products with small integers are exact."""
LOW = math.log(2) - HIGH
WHOLE = 1.5 * 2**23
"""Adding this float32 rounds to the nearest integer, because it has no fraction."""
BIAS, MANTISSA = 127, 23
"""The exponent bias of float32, and the position of the exponent."""
ERF = (
    (1.12837911, 0.187217742, 0.0524089858, 0.00364946271, 0.00028597709, 2.12532518e-06),
    (1.0, 0.499250323, 0.112865262, 0.014735911, 0.00114110345, 3.89225424e-05),
    3.83,
)
TANH = (
    (1.0, 0.129849628, 0.00299215456, 9.93971025e-06, -1.4907819e-08, 2.41092632e-11),
    (1.0, 0.463182807, 0.0240533277, 0.00023809477),
    7.9,
)
"""Coefficients of P and Q, constants first, and the argument's limit."""


def in_vectors(kernel: tirx.PrimFunc) -> Any:
    """Return ``kernel`` with the float32 functions above as polynomials."""

    def replaced(call: Any) -> Any:
        name = str(getattr(call.op, "name", "")).rpartition(".")[2]
        form = FORMS.get(name)
        if form is None or str(call.ty.dtype) != "float32" or len(call.args) != 1:
            return call
        return _named(call.args[0], form)

    return kernel.with_body(mapped(kernel.body, tvm.ir.expr.Call, replaced))


def _named(value: Any, use: Callable[[Any], Any], dtype: str = "float32") -> Any:
    """Return ``use`` of a variable for ``value``."""
    name = tirx.Var("v", dtype)
    return tirx.Let(name, value, use(name))


def _between(x: Any, least: float, most: float) -> Any:
    """Return ``x`` clamped at both ends; NaN stays NaN."""
    above = tirx.Select(x < f32(least), f32(least), x)
    return _named(above, lambda v: tirx.Select(v > f32(most), f32(most), v))


def _polynomial(coefficients: Sequence[float], x: Any) -> Any:
    *lower, value = [f32(float(np.float32(c))) for c in coefficients]
    for coefficient in reversed(lower):
        value = value * x + coefficient
    return value


def _exp(x: Any) -> Any:
    return _named(_between(x, LEAST, MOST), _exp_between)


def _exp_between(x: Any) -> Any:
    """Return ``exp(x)`` for ``x`` not far outside of the range with finite results."""
    shifted = x * f32(1 / math.log(2)) + f32(WHOLE)
    first = int(np.float32(WHOLE).view(np.int32))

    def scaled(shifted: Any) -> Any:
        count = shifted - f32(WHOLE)
        rest = x - count * f32(HIGH) - count * f32(LOW)
        power = tirx.reinterpret("int32", shifted) - i32(first)
        return _named(rest, lambda r: _named(power, lambda n: _scaled(r, n), "int32"))

    return _named(shifted, scaled)


def _scaled(r: Any, n: Any) -> Any:
    """Return ``exp(r) * 2 ** n`` in two steps, because ``n`` may exceed float32's exponents."""
    made = r * r * _polynomial(EXP, r) + r + f32(1)
    half = n >> i32(1)
    return made * _power(half) * _power(n - half)


def _power(n: Any) -> Any:
    return tirx.reinterpret("float32", (n + i32(BIAS)) << i32(MANTISSA))


def _sigmoid(x: Any) -> Any:
    return f32(1) / (f32(1) + _exp(f32(-1) * x))


def fraction(form: tuple[Sequence[float], Sequence[float], float]) -> Callable[[Any], Any]:
    """Return an odd function: a fraction of polynomials, and 1 beyond its limit."""
    above, below, most = form

    def inside(x: Any) -> Any:
        made = _named(x * x, lambda t: x * _polynomial(above, t) / _polynomial(below, t))
        return _named(made, lambda v: _between(v, -1.0, 1.0))

    def clamped(x: Any) -> Any:
        positive = tirx.Select(x > f32(most), f32(1), inside(x))
        return tirx.Select(x < f32(-most), f32(-1), positive)

    return clamped


FORMS: Mapping[str, Callable[[Any], Any]] = {
    "exp": _exp,
    "erf": fraction(ERF),
    "tanh": fraction(TANH),
    "sigmoid": _sigmoid,
}
"""The vector form of a function, by TVM's name."""
