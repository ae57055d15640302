"""LOGISTIC and TANH: tables for 8 bits, linear interpolation of 256 samples for 16 bits."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.functions import Function, Widths, function, nearest_to, real
from tvm_serenity.operators.record import elementwise
from tvm_serenity.operators.sample_bounds import check_sigmoid
from tvm_serenity.operators.scene import ALL, Array, Calls, Expr, Shape
from tvm_serenity.quantize import lookups

_MOST_SHIFT = {"LOGISTIC": 0, "TANH": 1}


def _steps(kind: str, op: Function) -> tuple[int, int]:
    """Return factor and right shift that rescale 16-bit values to steps of 1 / (3 * 4096)."""
    if abs(op.result.scale * 32768 - 1) > 1e-3:
        raise UnsupportedError(
            f"{kind} of int16 needs a result with scale 1/32768, not {op.result.scale:g}"
        )
    return lookups.sigmoid_multiplier(op.source.scale, _MOST_SHIFT[kind])


def _sigmoid(
    kind: str,
    op: Function,
    x: Expr,
    calls: Calls,
    kernel: Callable[[Shape, int, int], Any],
) -> Expr:
    made = kernel(op.source.shape, *_steps(kind, op))
    samples = check_sigmoid(kind, lookups.sigmoid_samples())
    return calls.kernel("q_sigmoid", made, x, samples)


def _logistic(op: Function, x: Expr, calls: Calls) -> Expr:
    from tvm_serenity.kernels import sixteen

    return _sigmoid("LOGISTIC", op, x, calls, sixteen.logistic)


def _tanh(op: Function, x: Expr, calls: Calls) -> Expr:
    from tvm_serenity.kernels import sixteen

    return _sigmoid("TANH", op, x, calls, sixteen.tanh)


def logistic_reference(x: Array, steps: tuple[int, int]) -> Array:
    """Return the logistic function of 16-bit values in steps of 2**-15.

    ``steps``: factor and shift that rescale values to steps of 1 / (3 * 4096).
    """
    found, positive = _interpolated(x, steps, 9)
    size = np.where(found < 0, 0x7FFF << 10, found)
    rounded = np.where(positive, size + (1 << 9), (1 << 25) + (1 << 9) - 1 - size)
    return np.asarray(rounded >> 10).astype(np.int16)


def tanh_reference(x: Array, steps: tuple[int, int]) -> Array:
    """Return tanh of 16-bit values in steps of 2**-15; see :func:`logistic_reference`."""
    found, positive = _interpolated(x, steps, 8)
    size = np.where(found < 0, 0xFFFF << 8, found)
    rounded = np.where(positive, size + (1 << 7) - (1 << 23), (1 << 23) + (1 << 7) - 1 - size)
    return np.asarray(rounded >> 8).astype(np.int16)


def _interpolated(x: Array, steps: tuple[int, int], bits: int) -> tuple[Array, Array]:
    """Return magnitude and sign of each sigmoid, with ``bits`` more bits than the samples.

    ``reference_integer_ops``: samples are 1/24 apart, ``2 ** bits`` steps; beyond them the value is
    1.
    """
    factor, shift = steps
    at = (x.astype(np.int64) * factor + ((1 << shift) >> 1)) >> shift
    size = np.abs(at)
    index, rest = size >> bits, size & ((1 << bits) - 1)
    table = lookups.sigmoid_samples().astype(np.int64)
    low = table[np.minimum(index, 254)]
    high = table[np.minimum(index, 254) + 1]
    return np.where(index >= 255, -1, (low << bits) + rest * (high - low)), at >= 0


def _logistic_reference(op: Function, x: Array) -> Array:
    return logistic_reference(x, _steps("LOGISTIC", op))


def _tanh_reference(op: Function, x: Array) -> Array:
    return tanh_reference(x, _steps("TANH", op))


OPERATORS = (
    function(
        elementwise(
            "LOGISTIC",
            "Sigmoid",
            relax="sigmoid",
            relay="sigmoid",
            real=lambda x: 1 / (1 + np.exp(-x)),
            free=True,
        ),
        Widths(
            table=real(lookups.logistic),
            bounds=nearest_to(lambda x: 1 / (1 + np.exp(-x))),
            wide=_logistic,
            wide_reference=_logistic_reference,
            dtypes=ALL,
        ),
    ),
    function(
        elementwise("TANH", "Tanh", relax="tanh", relay="tanh", real=np.tanh, free=True),
        Widths(
            table=real(lookups.tanh),
            bounds=nearest_to(np.tanh),
            wide=_tanh,
            wide_reference=_tanh_reference,
            dtypes=ALL,
        ),
    ),
)
