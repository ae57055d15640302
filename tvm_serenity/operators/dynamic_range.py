"""Dynamic range quantisation: float activations and 8-bit weights, as in LiteRT's hybrid kernels.

Each batch of activations is quantised to int8 with its own scale at run time; sums are integers,
results floats. LiteRT's kernels for x86 and Arm round the float just below one half differently; we
round it to 0, as on Arm.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.dynamic_records import BatchSteps, DynamicDense, Limits
from tvm_serenity.operators.scene import LIMITS, Array, Calls, Expr, Scene

Floats = npt.NDArray[np.float32]
_LEAST, _MOST = -128, 127
_TANH = 4
"""The number of the activation that is applied after a float operator."""


def weights_of(scene: Scene, operand: int, channels: int) -> tuple[Array, Floats] | None:
    """Return constant int8 weights and their scale, or a scale per channel along an axis.

    Return None if LiteRT has no such kernel: weights of another type, or with a zero point.
    """
    found = scene.operands[operand]
    if found is None or found.params is None or found.values is None:
        return None
    scales = np.asarray(found.params.scales, np.float32)
    if found.dtype != "int8" or any(found.params.zero_points):
        return None
    if scales.size > 1 and found.params.axis != channels:
        raise UnsupportedError("the scales of its weights do not vary along the output channels")
    return found.values, scales if (scales != scales[0]).any() else scales[:1]


def bias_of(scene: Scene, operand: int) -> Floats | None:
    """Return a constant float bias; None if the operator has none."""
    found = scene.operands[operand] if operand < len(scene.operands) else None
    if found is None:
        return None
    if found.values is None or found.dtype != "float32":
        raise UnsupportedError("its bias is not a float constant")
    return np.asarray(found.values, np.float32).reshape(-1)


def limits_of(activation: int) -> Limits:
    """Return the limits of a fused activation, None if it has none."""
    if activation in (0, _TANH):
        return None
    if activation not in LIMITS:
        raise UnsupportedError(f"activation {activation} is not supported")
    low, high = LIMITS[activation]
    most = float(np.finfo(np.float32).max)
    return (-most if low is None else low, most if high is None else high)


def quantised(spec: BatchSteps, value: Expr, calls: Calls) -> tuple[Expr, Expr]:
    """Return an input of shape ``spec.shape`` as int8, and the quantisation of each batch."""
    from tvm_serenity.kernels import dynamic

    reach = calls.kernel("d_ends", dynamic.ends(spec), value)
    found = calls.kernel("d_steps", dynamic.steps(spec), reach)
    return calls.kernel("d_stored", dynamic.stored(spec), value, found), found


def layer(
    spec: DynamicDense, value: Expr, held: tuple[Array, Floats, Floats | None], calls: Calls
) -> Expr:
    """Return ``value`` (rows, inputs) times weights [inputs, units].

    ``held``: weights, scales and bias; scales and bias have one number per unit.
    """
    from tvm_serenity.kernels.dynamic import dense

    weights, scales, bias = held
    given = quantised(BatchSteps((spec.rows, spec.inputs), spec.asymmetric), value, calls)
    sums = weights.sum(0, dtype=np.int32) if spec.asymmetric else None
    return calls.kernel("d_dense", dense(spec), *given, *constants(weights, sums, scales, bias))


def quantised_reference(x: Array, asymmetric: bool) -> tuple[Array, Floats]:
    """Return ``x`` (batches, elements) as integers minus their zero points, and the scales."""
    given = np.asarray(x, np.float32)
    scale, inverse, zero = (_ends if asymmetric else _reach)(given)
    whole = _nearest(given * inverse[:, None]) + zero[:, None]
    least = _LEAST if asymmetric else -_MOST
    return np.clip(whole, least, _MOST) - zero[:, None], scale


def _reach(x: Floats) -> tuple[Floats, Floats, Array]:
    """``SymmetricQuantizeFloats``: scale, inverse scale, zero point."""
    most, reach = np.float32(_MOST), np.abs(x).max(1)
    nothing = reach == 0
    held = np.where(nothing, most, reach)
    inverse = np.where(nothing, np.float32(0), most / held).astype(np.float32)
    return np.asarray(held / most, np.float32), inverse, np.zeros(len(x), np.int64)


def _ends(x: Floats) -> tuple[Floats, Floats, Array]:
    """``AsymmetricQuantizeFloats``: scale, inverse scale, zero point.

    The range is a float, the scale is a double.
    """
    low, high = np.minimum(x.min(1), np.float32(0)), np.maximum(x.max(1), np.float32(0))
    span = np.asarray(high - low, np.float32)
    nothing = span == 0
    step = np.where(nothing, 1.0, span.astype(np.float64) / (_MOST - _LEAST))
    below, above = low / step, high / step
    nearer = abs(_LEAST) + np.abs(below) < _MOST + np.abs(above)
    point = np.clip(np.where(nearer, _LEAST - below, _MOST - above), _LEAST, _MOST)
    scale = step.astype(np.float32)
    inverse = np.where(nothing, np.float32(0), np.float32(1) / scale)
    return scale, inverse, np.where(nothing, 0, _nearest(point))


def _nearest(x: Array) -> Array:
    """Return ``x`` rounded to integers, halves away from zero."""
    whole = np.trunc(x)
    rest = x - whole
    return np.asarray(whole + (rest >= 0.5) - (rest <= -0.5)).astype(np.int64)


def finished(made: Array, bias: Floats | None, limits: Limits) -> Array:
    """Return floats plus a bias, clamped to limits."""
    total = made if bias is None else made + bias
    return total if limits is None else np.clip(total, np.float32(limits[0]), np.float32(limits[1]))


def constants(*arrays: Array | None) -> Sequence[Array]:
    """Return the constants that are present."""
    return [array for array in arrays if array is not None]
