"""Scales and zero points, checked."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import InputError

INTEGERS = ("int8", "uint8", "int16")
"""Types of quantised activations."""


@dataclass(frozen=True)
class Affine:
    """The storage of a tensor: real = scale * (stored - zero point).

    ``scales`` has one entry, or one per channel along ``axis``; so has ``zero_points``.
    """

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    dtype: str
    axis: int = 0

    @property
    def scale(self) -> float:
        """The single scale."""
        (scale,) = self.scales
        return scale

    @property
    def zero_point(self) -> int:
        """The single zero point."""
        (zero_point,) = set(self.zero_points)
        return zero_point

    @property
    def is_per_tensor(self) -> bool:
        """Whether one scale and one zero point apply to all elements."""
        return len(self.scales) == 1 and len(set(self.zero_points)) == 1

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest stored value."""
        info = np.iinfo(self.dtype)
        return int(info.min), int(info.max)

    def real(self, stored: int) -> float:
        """Return the number, in float32, of a stored value."""
        return float(np.float32(self.scale) * np.float32(stored - self.zero_point))

    def stored(self, real: float) -> int:
        """Return the stored value nearest to ``real``, not clamped."""
        ratio = np.float32(real) / np.float32(self.scale)
        return self.zero_point + int(np.trunc(ratio + np.copysign(np.float32(0.5), ratio)))


def affine(
    name: str,
    scales: npt.NDArray[np.float32],
    zero_points: npt.NDArray[np.integer[Any]],
    dtype: str,
    axis: int,
    shape: tuple[int, ...],
) -> Affine:
    """Return the checked parameters of tensor ``name``; raise :class:`InputError` if invalid."""
    flat, zeros = scales.reshape(-1), zero_points.reshape(-1)
    if not (np.isfinite(flat).all() and (flat > 0).all()):
        bad = float(flat[~(np.isfinite(flat) & (flat > 0))][0])
        raise InputError(f"tensor {name!r}: scale {bad:g}; scales must be finite and above 0")
    limits = np.iinfo(dtype)
    outside = zeros[(zeros < limits.min) | (zeros > limits.max)]
    if outside.size:
        raise InputError(
            f"tensor {name!r}: zero point {int(outside[0])} is outside of {dtype}, "
            f"{limits.min} to {limits.max}"
        )
    if zeros.size not in (1, flat.size):
        raise InputError(f"tensor {name!r}: {flat.size} scales but {zeros.size} zero points")
    if flat.size > 1 and (not shape or not -len(shape) <= axis < len(shape)):
        raise InputError(f"tensor {name!r}: channel axis {axis} of a tensor of shape {shape}")
    if flat.size > 1 and shape[axis] != flat.size:
        raise InputError(
            f"tensor {name!r}: {flat.size} scales for the {shape[axis]} channels of axis {axis}"
        )
    return Affine(
        tuple(float(s) for s in flat),
        tuple(int(z) for z in zeros),
        dtype,
        axis % len(shape) if flat.size > 1 else 0,
    )
