"""Operators with weights: filters, biases, and the requantisation of sums.

A :class:`WeightedLayer` is read from an operator of a file here, or from the operators between
``dequantize`` and ``quantize`` (``relax/quantize_weighted.py``); both compute the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.records import Requantise
from tvm_serenity.operators.scene import Array, Scene, Stored
from tvm_serenity.quantize.fixed import divided_by_power, half_away, high_product, multiplier

MOST_WIDE_SHIFT = 7
"""The largest left shift that LiteRT supports for 64-bit sums."""


@dataclass(frozen=True, eq=False)
class Filters:
    """Constant weights: stored values, a scale per output channel, one zero point."""

    data: Array
    scales: npt.NDArray[np.float64]
    zero: int


@dataclass(frozen=True, eq=False, kw_only=True)
class WeightedLayer:
    """Activations, weights with output channels last, and the rounding of sums.

    ``bias``: one number per channel, in the scale of the sums. ``limits``: of stored results.
    """

    source: Stored
    result: Stored
    filters: Filters
    bias: npt.NDArray[np.int64]
    limits: tuple[int, int]
    rounding: str

    def multipliers(self, in_float: bool) -> npt.NDArray[np.float64]:
        """Return the real multiplier per channel; ``in_float``: multiply the scales in float32."""
        real = np.float32 if in_float else np.float64
        product: Array = np.asarray(self.source.scale, real) * self.filters.scales.astype(real)
        return np.asarray(product.astype(np.float64) / self.result.scale)

    def finish(self, reals: npt.NDArray[np.float64]) -> Requantise:
        """Return the requantisation of sums: "wide" for 64-bit sums, otherwise as requested."""
        made, rounding = multiplier(reals), self.rounding
        if self.result.dtype == "int16" and rounding != "float":
            rounding = "wide"
            if max(made.shift) > MOST_WIDE_SHIFT:
                raise UnsupportedError(
                    f"its sums would be shifted left by {max(made.shift)} bits; LiteRT "
                    f"supports at most {MOST_WIDE_SHIFT}"
                )
        return Requantise(made, self.result.zero, *self.limits, self.result.dtype, rounding)

    def folded_bias(self) -> npt.NDArray[np.int32]:
        """Return the 32-bit bias plus the contribution of the input's zero point."""
        centred = self.filters.data.astype(np.int64) - self.filters.zero
        return narrow(self.bias + folded(self.source, centred, tuple(range(centred.ndim - 1))))


def folded(source: Stored, weights: Array, axis: int | tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Return the contribution of the zero point of ``source`` to sums over ``axis``."""
    return np.asarray(-source.zero * weights.sum(axis=axis, dtype=np.int64))


def of_one_scale(scene: Scene, operand: int, dtypes: Sequence[str]) -> tuple[Array, float]:
    """Return constant weights without a zero point, and their single scale."""
    found = scene.operands[operand]
    if found is None or found.params is None or found.values is None:
        raise UnsupportedError("its weights are not quantised constants")
    stored = scene.stored(operand)
    if stored.dtype not in dtypes or stored.zero:
        raise UnsupportedError(
            f"its weights have type {stored.dtype} or a zero point, which is not supported"
        )
    return found.values, stored.scale


def summable(kind: str, source: Stored, result: Stored) -> None:
    """Refuse activation types that LiteRT does not multiply by weights."""
    if {source.dtype, result.dtype} != {"int16"} and not {source.dtype, result.dtype} <= {
        "int8",
        "uint8",
    }:
        raise UnsupportedError(
            f"LiteRT does not support {kind} from {source.dtype} to {result.dtype}"
        )


def filters_of(scene: Scene, operand: int, channels: int) -> Filters:
    """Return the weights of an operator; ``channels``: their axis of output channels."""
    found = scene.operands[operand]
    if found is None or found.params is None:
        raise UnsupportedError("its weights are not quantised")
    if found.values is None:
        raise UnsupportedError("its weights are computed at run time; use constants")
    if found.dtype not in ("int8", "uint8"):
        raise UnsupportedError(f"its weights have type {found.dtype}; expected int8 or uint8")
    count, params = found.shape[channels], found.params
    if len(params.scales) > 1 and params.axis != channels:
        raise UnsupportedError("the scales of its weights do not vary along the output channels")
    scales = np.broadcast_to(np.asarray(params.scales, np.float64), (count,))
    return Filters(found.values, scales, params.zero_point)


def bias_of(scene: Scene, operand: int, count: int) -> npt.NDArray[np.int64]:
    """Return the stored bias in the scale of the sums; zeros if it is omitted."""
    found = scene.operands[operand] if operand < len(scene.operands) else None
    if found is None:
        return np.zeros(count, np.int64)
    if found.values is None:
        raise UnsupportedError("its bias is computed at run time; use a constant")
    values = np.asarray(found.values, np.int64).reshape(-1)
    if values.size not in (1, count):
        raise UnsupportedError(
            f"its bias has {values.size} values; expected one per channel ({count})"
        )
    return np.broadcast_to(values, (count,))


def layer_of(
    scene: Scene, source: Stored, filters: Filters, fields: tuple[int, int]
) -> WeightedLayer:
    """Return the layer of an operator.

    ``fields``: the input of its bias and the option of its activation. The last axis of ``filters``
    are the output channels.
    """
    result, (bias, activation) = scene.result(), fields
    return WeightedLayer(
        source=source,
        result=result,
        filters=filters,
        bias=bias_of(scene, bias, filters.data.shape[-1]),
        limits=scene.limits(result, activation),
        rounding=scene.rounding,
    )


def narrow(bias: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Return a bias in the 32 bits that kernels add."""
    limits = np.iinfo(np.int32)
    if bias.min(initial=0) < limits.min or bias.max(initial=0) > limits.max:
        raise UnsupportedError("its bias, including the zero point's share, exceeds 32 bits")
    return bias.astype(np.int32)


def requantised(total: Array, spec: Requantise) -> Array:
    """Return sums (channels last) requantized to stored values."""
    value, shift = (np.asarray(v, np.int64) for v in (spec.multiplier.value, spec.multiplier.shift))
    if spec.rounding == "wide":
        short = np.where(value < 0x7FFF0000, (value + (1 << 15)) >> 16, 0x7FFF)
        scaled = (total * short + (np.int64(1) << (14 - shift))) >> (15 - shift)
    elif spec.rounding == "double":
        scaled = half_away(total * np.asarray(spec.multiplier.real)).astype(np.int64)
    else:
        left, right = np.maximum(shift, 0), np.maximum(-shift, 0)
        scaled = divided_by_power(high_product(total << left, value), right)
    return np.asarray(np.clip(scaled + spec.zero_point, spec.low, spec.high)).astype(spec.dtype)
