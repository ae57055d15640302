"""Sums of two tensors with vector instructions: calls of ``library/added.h``, ``linear.h``."""

import math
from dataclasses import asdict

from tvm_serenity.firmware.program import Kernel, Param
from tvm_serenity.firmware.tir.library import initialiser
from tvm_serenity.firmware.tir.linear import linear_form, signed
from tvm_serenity.kernels.records import Sum
from tvm_serenity.kernels.rows import RowKernel
from tvm_serenity.quantize.fixed import Multiplier

ONE_HALF = 1 << 30
"""A multiplier that, with no shift, rounds nothing: operands are even once they are shifted."""


def sum_with_vectors(name: str, spec: Sum, rows: RowKernel | None) -> Kernel | None:
    """Return the kernel of a sum of two 8-bit tensors of one shape, or of a row of it.

    None where the library has none: tensors that are broadcast, other types or roundings, shifts to
    the left after the product.
    """
    pair = spec.pair
    sources = {source.dtype for source in pair.sources}
    first, second = _exact(spec.left, spec.shift), _exact(signed(spec.right), spec.shift)
    known = pair.rounding == "tflite" and pair.shapes[0] == pair.shapes[1] and len(sources) == 1
    if not known or not sources | {pair.result.dtype} <= {"int8", "uint8"}:
        return None
    if first is None or second is None or spec.out.shift[0] >= 0:
        return None
    if rows is not None and (
        len(rows.variants) > 1 or [slot.parameter for slot in rows.slots] != [0, 1]
    ):
        return None
    dtype = pair.sources[0].dtype
    fields: dict[str, int] = {
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
    count = math.prod(pair.output_shape if rows is None else pair.output_shape[2:])
    params = [Param(at, dtype, True) for at in ("a", "b")]
    params.append(Param("out", pair.result.dtype, False))
    how, form = "added", linear_form(spec)
    if form is not None:
        how, fields = "linear", asdict(form)
    function = "add" if form is None else "add_linear"
    body = (
        f"    static const {how}_{dtype} s = {initialiser(fields)};\n"
        f"    {function}_{dtype}(&s, a, b, (uint8_t *)out, {count});\n"
    )
    return Kernel(name, tuple(params), body, ("dot.h", "requantise.h", f"{how}.h:{dtype}"))


def _exact(m: Multiplier, left: int) -> tuple[int, int, int] | None:
    """Multiplier, shift to the left before it and below 0 after it; None where there are none."""
    value, shift = m.value[0], m.shift[0]
    if shift < 0:
        return value, left, shift
    return (value, left + 1, -1) if shift == 0 and abs(value) == ONE_HALF else None
