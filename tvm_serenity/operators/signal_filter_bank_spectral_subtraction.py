"""SignalFilterBankSpectralSubtraction: channels minus an estimate of their noise, a state.

From TFLM's signal library. The estimate is smoothed over time; odd and even channels have different
coefficients.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.kernels.records import Subtraction
from tvm_serenity.operators.parts import IntegerMeaning, StateUse
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene, Shape

_ESTIMATE = 1


def _read(scene: Scene) -> Subtraction:
    channels = scene.option("num_channels")
    scene.types(("uint32", "uint32"), ("uint32", "uint32"))
    shapes = {scene.shape(0), scene.results[0].shape, scene.results[1].shape}
    if shapes != {(channels,)}:
        raise UnsupportedError(
            f"{scene.kind} of {channels} channels: its input has shape {list(scene.shape(0))}"
        )
    found = Subtraction(
        channels,
        (scene.option("smoothing"), scene.option("alternate_smoothing")),
        (scene.option("one_minus_smoothing"), scene.option("alternate_one_minus_smoothing")),
        scene.option("min_signal_remaining"),
        scene.option("smoothing_bits"),
        scene.option("spectral_subtraction_bits"),
        bool(scene.option("clamping")),
    )
    if not (0 <= found.scale < 32 and 0 <= found.bits < 64):
        raise UnsupportedError(
            f"{scene.kind}: spectral_subtraction_bits {found.scale} or smoothing_bits "
            f"{found.bits} is out of range"
        )
    if any(not 0 <= v < 2**31 for v in (*found.smoothing, *found.rest, found.least)):
        raise UnsupportedError(f"{scene.kind} with a negative coefficient is not supported")
    return found


def _keeps(shapes: Sequence[Shape], _options: Mapping[str, Any]) -> list[tuple[Shape, str]]:
    return [(shapes[0], "uint32")]


def _compute(op: Subtraction, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.signal_levels import subtraction

    made, noise = calls.kernels("q_subtraction", subtraction(op), 2, *values)
    return [made, calls.leave(_ESTIMATE, noise)]


def _reference(op: Subtraction, x: Array, estimate: Array) -> tuple[Array, Array, Array]:
    made, noise = [], []
    for i, (value, before) in enumerate(zip(x.tolist(), estimate.tolist(), strict=True)):
        scaled = (value << op.scale) % 2**32
        mixed = scaled * op.smoothing[i % 2] + before * op.rest[i % 2]
        held = (mixed % 2**64 >> op.bits) % 2**32
        used = min(held, scaled)
        noise.append(used if op.clamps else held)
        floor = (value * op.least >> op.bits) % 2**32
        made.append(max(scaled - used >> op.scale, floor))
    kept = np.array(noise, np.uint32)
    return np.array(made, np.uint32), kept, kept


OPERATORS = (
    Operator(
        kinds=("SignalFilterBankSpectralSubtraction",),
        integers=IntegerMeaning(exact=True, read=_read, compute=_compute, reference=_reference),
        state=StateUse(keeps=_keeps),
    ),
)
