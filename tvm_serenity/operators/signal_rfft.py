"""SignalRfft and SignalIrfft: Fourier transforms of real signals, from TFLM's signal library.

In fixed point of 16 and 32 bits, and in float32. Spectra interleave real and imaginary parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.operators.parts import IntegerMeaning
from tvm_serenity.operators.record import Operator
from tvm_serenity.operators.scene import Array, Calls, Expr, Scene, Shape
from tvm_serenity.quantize import fourier

_TYPES = ("int16", "int32", "float32")


@dataclass(frozen=True)
class Transform:
    """Signals of ``length`` numbers, zero-padded to ``size``; ``result``: the result's shape."""

    shape: Shape
    result: Shape
    size: int
    dtype: str
    inverse: bool

    @property
    def count(self) -> int:
        """The number of signals."""
        return int(np.prod(self.shape[:-1], dtype=np.int64))


def _read(scene: Scene, inverse: bool) -> Transform:
    size, dtype = scene.option("fft_length"), scene.dtype(0)
    shape, result = scene.shape(0), scene.results[0].shape
    if dtype not in _TYPES or scene.results[0].dtype != dtype:
        raise UnsupportedError(f"TFLM does not support {scene.kind} of {dtype}")
    if size < 4 or size & (size - 1):
        raise UnsupportedError(
            f"{scene.kind}: fft_length {size} must be a power of two of at least 4"
        )
    given, made = (size + 2, size) if inverse else (shape[-1] if shape else 0, size + 2)
    fits = shape and shape[-1] == given and 0 < given <= size + 2 * inverse
    if not fits or result != (*shape[:-1], made):
        raise UnsupportedError(
            f"{scene.kind} with fft_length {size} from {list(shape)} to {list(result)} is not "
            "supported"
        )
    return Transform(shape, result, size, dtype, inverse)


def _compute(op: Transform, values: Sequence[Expr], calls: Calls) -> Expr:
    from tvm_serenity.kernels.fft import Fourier, irfft, rfft

    spec = Fourier(op.count, op.shape[-1], op.size, op.dtype, op.inverse)
    flat = calls.apply("reshape", values[0], (op.count, op.shape[-1]))
    constants = [
        table(op.size // 2, op.dtype, op.inverse) for table in (fourier.roots, fourier.turns)
    ]
    kernel = (irfft if op.inverse else rfft)(spec)
    name = "q_irfft" if op.inverse else "q_rfft"
    return calls.apply("reshape", calls.kernel(name, kernel, flat, *constants), op.result)


def _reference(op: Transform, x: Array) -> Array:
    return (fourier.irfft if op.inverse else fourier.rfft)(x, op.size)


def _rfft(scene: Scene) -> Transform:
    return _read(scene, False)


def _irfft(scene: Scene) -> Transform:
    return _read(scene, True)


OPERATORS = tuple(
    Operator(
        kinds=(kind,),
        integers=IntegerMeaning(exact=True, read=read, compute=_compute, reference=_reference),
    )
    for kind, read in (("SignalRfft", _rfft), ("SignalIrfft", _irfft))
)
