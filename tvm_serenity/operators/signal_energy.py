"""SignalEnergy: squared magnitudes of a spectrum, from TFLM's signal library.

Results outside of ``start_index`` to ``end_index`` are 0; TFLM leaves them uninitialised.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene


@dataclass(frozen=True)
class Energy:
    """Energies of complex numbers ``start`` up to ``end``, out of ``size``."""

    size: int
    start: int
    end: int


def _read(scene: Scene) -> Energy:
    shape, made = scene.shape(0), scene.results[0].shape
    scene.types(("int16",), ("uint32",))
    start, end = scene.option("start_index"), scene.option("end_index")
    if len(shape) != 1 or shape[0] % 2 or made != (shape[0] // 2,):
        raise UnsupportedError(
            f"{scene.kind} from shape {list(shape)} to {list(made)} is not supported"
        )
    if not 0 <= start <= end <= made[0]:
        raise UnsupportedError(
            f"{scene.kind}: the range {start} to {end} is not within its {made[0]} results"
        )
    return Energy(made[0], start, end)


def _compute(op: Energy, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.signal import energy

    pairs = calls.apply("reshape", values[0], (op.size, 2))
    return calls.kernel("q_energy", energy(op.size, op.start, op.end), pairs)


def _reference(op: Energy, x: Array) -> Array:
    squares = (x.reshape(-1, 2).astype(np.int64) ** 2).sum(axis=1)
    index = np.arange(op.size)
    return np.where((index >= op.start) & (index < op.end), squares, 0).astype(np.uint32)


OPERATORS = (
    Operator(
        kinds=("SignalEnergy",),
        integers=IntegerMeaning(exact=True, read=_read, compute=_compute, reference=_reference),
    ),
)
