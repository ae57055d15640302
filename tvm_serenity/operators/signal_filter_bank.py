"""SignalFilterBank: energies summed in overlapping channels, from TFLM's signal library.

Each frequency contributes to two channels: its weight to one, the remainder to the next. Sums have
64 bits and wrap.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene

_WEIGHTS, _UNWEIGHTS, _STARTS, _PLACES, _WIDTHS = range(1, 6)


@dataclass(frozen=True)
class FilterBank:
    """``channels`` channels of ``size`` energies; ``weights`` are stored consecutively."""

    size: int
    channels: int
    weights: tuple[int, int]


def _read(scene: Scene) -> FilterBank:
    (size,), channels = scene.shape(0), scene.option("num_channels")
    scene.types(("uint32", *("int16",) * 5), ("uint64",))
    starts, places, widths = (scene.constant(t) for t in (_STARTS, _PLACES, _WIDTHS))
    weights = len(scene.constant(_WEIGHTS)), len(scene.constant(_UNWEIGHTS))
    if {len(starts), len(places), len(widths)} != {channels + 1}:
        raise UnsupportedError(
            f"{scene.kind} of {channels} channels: its tables must have {channels + 1} entries"
        )
    if scene.results[0].shape != (channels,):
        raise UnsupportedError(
            f"{scene.kind} of {channels} channels: its result has shape "
            f"{list(scene.results[0].shape)}"
        )
    for start, place, width in zip(starts, places, widths, strict=True):
        ends = max(start + width - size, place + width - min(weights))
        if width > 0 and (min(start, place) < 0 or ends > 0):
            raise UnsupportedError(
                f"{scene.kind}: its tables refer to elements outside of its input or weights"
            )
    return FilterBank(size, channels, weights)


def _compute(op: FilterBank, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.signal import filter_bank

    return calls.kernel("q_filter_bank", filter_bank(op.size, op.channels, op.weights), *values)


def _reference(op: FilterBank, x: Array, *tables: Array) -> Array:
    weights, unweights, starts, places, widths = (t.astype(int).tolist() for t in tables)
    energies, sums = x.astype(object), [0] * (op.channels + 2)
    for channel in range(op.channels + 1):
        for j in range(widths[channel]):
            value = energies[starts[channel] + j]
            sums[channel] += weights[places[channel] + j] * value
            sums[channel + 1] += unweights[places[channel] + j] * value
    return np.array([total % 2**64 for total in sums[1 : op.channels + 1]], np.uint64)


OPERATORS = (
    Operator(
        kinds=("SignalFilterBank",),
        integers=IntegerMeaning(exact=True, read=_read, compute=_compute, reference=_reference),
    ),
)
