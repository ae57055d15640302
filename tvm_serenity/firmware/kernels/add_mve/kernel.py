"""Sums of two 8-bit tensors with vectors, by the same steps as LiteRT's reference kernel."""

from tvm_serenity.firmware.isa import Isa
from tvm_serenity.firmware.kernels.parts import sums
from tvm_serenity.firmware.kernels.parts.counts import TYPES
from tvm_serenity.firmware.kernels.parts.layer import PlainLayer
from tvm_serenity.firmware.kernels.parts.linear import linear_form, signed
from tvm_serenity.firmware.kernels.parts.overlap import elements
from tvm_serenity.firmware.kernels.record import KernelCall, LibraryKernel
from tvm_serenity.firmware.program import LibraryFile
from tvm_serenity.kernels.records import Sum
from tvm_serenity.quantize.fixed import Multiplier

ONE_HALF = 1 << 30
"""A multiplier of 1/2, exact without a shift: shifted operands are even."""


def refuses(layer: PlainLayer) -> str:
    """Return why the kernel does not compute ``layer``; ``add_any`` computes linear forms."""
    if reason := sums.refuses(layer):
        return reason
    if linear_form(layer.spec) is not None:
        return "supports only sums that are no linear form"
    return "" if _steps(layer.spec) is not None else "supports only sums that are shifted right"


def calls_of(name: str, layer: PlainLayer) -> list[KernelCall]:
    """Return the call for ``layer``."""
    steps, dtype = _steps(layer.spec), layer.spec.pair.sources[0].dtype
    assert steps is not None, "a layer that is not refused"
    file = LibraryFile("add_mve/kernel.h", dtype)
    return sums.call(name, layer, f"added_{dtype}", steps, file)


def _steps(spec: Sum) -> dict[str, int] | None:
    """Return the parameters of the steps of a sum, None if the kernel lacks one of the steps."""
    pair = spec.pair
    first, second = _exact(spec.left, spec.shift), _exact(signed(spec.right), spec.shift)
    if first is None or second is None or spec.out.shift[0] >= 0:
        return None
    return {
        "first_multiplier": first[0],
        "second_multiplier": second[0],
        "multiplier": spec.out.value[0],
        "low": pair.low,
        "high": pair.high,
        "first_zero": pair.sources[0].zero_point,
        "second_zero": pair.sources[1].zero_point,
        "first_left": first[1],
        "second_left": second[1],
        "first_shift": first[2],
        "second_shift": second[2],
        "shift": spec.out.shift[0],
        "zero_point": pair.result.zero_point,
    }


def _exact(m: Multiplier, left: int) -> tuple[int, int, int] | None:
    """Return the multiplier, the left shift before it and the negative shift after it, or None."""
    value, shift = m.value[0], m.shift[0]
    if shift < 0:
        return value, left, shift
    return (value, left + 1, -1) if shift == 0 and abs(value) == ONE_HALF else None


KERNEL = LibraryKernel(
    name="add_mve",
    computes=sums.SUM,
    isa=frozenset({Isa.MVE}),
    refuses=refuses,
    calls=calls_of,
    passages=lambda layer, _options: elements(layer, 2),
    cases=TYPES,
    case=sums.case,
    counts=sums.counts,
)
