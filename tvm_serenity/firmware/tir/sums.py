"""Sums of two 8-bit tensors: calls of ``library/linear.h``, with vectors of ``added.h``."""

import math

from tvm_serenity.firmware.program import Kernel, Param
from tvm_serenity.firmware.tir.library import initialiser
from tvm_serenity.firmware.tir.linear import linear_form, signed
from tvm_serenity.kernels.records import Sum
from tvm_serenity.kernels.rows import RowKernel
from tvm_serenity.quantize.fixed import Multiplier

ONE_HALF = 1 << 30
"""A multiplier that, with no shift, rounds nothing: operands are even once they are shifted."""


def sum_of_two(
    name: str, spec: Sum, rows: RowKernel | None, *, vectors: bool = False
) -> Kernel | None:
    """Return the kernel of a sum of two 8-bit tensors of one shape, or of a row of it.

    None where the library has none: tensors that are broadcast, other types or roundings; without
    ``vectors`` those that are no linear form, with them shifts to the left after the product.
    """
    pair = spec.pair
    sources = {source.dtype for source in pair.sources}
    known = pair.rounding == "tflite" and pair.shapes[0] == pair.shapes[1] and len(sources) == 1
    if not known or not sources | {pair.result.dtype} <= {"int8", "uint8"}:
        return None
    if rows is not None and (
        len(rows.variants) > 1 or [slot.parameter for slot in rows.slots] != [0, 1]
    ):
        return None
    dtype = pair.sources[0].dtype
    count = math.prod(pair.output_shape if rows is None else pair.output_shape[2:])
    params = [Param(at, dtype, True) for at in ("a", "b")]
    params.append(Param("out", pair.result.dtype, False))
    form = linear_form(spec)
    if form is not None:
        fields = {"first": form.first, "second": form.second, "constant": form.constant}
        function, bits = f"linear_{dtype}_{form.shift}", f":{form.shift}"
        file = "linear.h"
    else:
        found = _steps(spec) if vectors else None
        if found is None:
            return None
        fields, function, file, bits = found, f"added_{dtype}", "added.h", ""
    body = (
        f"    static const {function} s = {initialiser(fields)};\n"
        f"    add_{function}(&s, a, b, (uint8_t *)out, {count});\n"
    )
    support = ("dot.h", "requantise.h", f"{file}:{dtype}{bits}")
    return Kernel(name, tuple(params), body, support)


def _steps(spec: Sum) -> dict[str, int] | None:
    """The numbers of a sum in the steps of LiteRT's reference; None: ``added.h`` has not all."""
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
    """Multiplier, shift to the left before it and below 0 after it; None where there are none."""
    value, shift = m.value[0], m.shift[0]
    if shift < 0:
        return value, left, shift
    return (value, left + 1, -1) if shift == 0 and abs(value) == ONE_HALF else None
