"""The error of a kernel's result that differently rounded math functions cause.

Libraries round exponentials and similar functions differently, each within one or two units in the
last place. The kernel may amplify this error: a difference of nearly equal numbers
(``x - tanh(x)``) consists mostly of it. So each function in TVM's own kernel is changed a little,
and the change of the result gives the error.
"""

from collections.abc import Sequence

import numpy as np
import tvm
from tvm import tirx
from tvm.ir.expr import Call

from tvm_serenity.firmware.lower.expressions import APPROXIMATED, dtype_of
from tvm_serenity.firmware.program import Array
from tvm_serenity.firmware.validate.kernel_reference import Reference
from tvm_serenity.kernels.nodes import mapped, parts

MOVED = 2.0**-12
"""The relative change of a function's result, well above later roundings."""
UNIT = 2.0**-23
"""A unit in the last place of float32, relative to the number."""
ABSOLUTE = {"tanh": 2.0**-3}
"""Absolute errors of TVM's functions near 0, in units of 1: tanh is a quotient of exponentials
with an error of 1.5e-8 (measured). The other functions have an error of at most two units."""


def approximated(source: tirx.PrimFunc) -> int:
    """Return the number of functions in a kernel whose results libraries round differently."""
    return sum(map(_is_approximated, parts(source.body, Call)))


def rounding(
    reference: Reference, inputs: Sequence[Array], expected: Sequence[Array]
) -> list[Array]:
    """Return the change of ``expected``, in float64, if each function has an error of one unit.

    The changes of all functions are added. ``expected``: the results of TVM's kernel for
    ``inputs``.
    """
    totals: list[Array] = [np.zeros(want.shape, np.float64) for want in expected]
    for number in range(approximated(reference.source)):
        kernel = moved(reference.source, number).with_attr("global_symbol", "moved")
        function = tvm.compile(kernel, tvm.target.Target("llvm"))["moved"]
        found = reference.results(function, inputs)
        for total, want, got in zip(totals, expected, found, strict=True):
            with np.errstate(all="ignore"):
                apart = np.abs(got.astype(np.float64) - want.astype(np.float64))
            total += np.where(np.isfinite(apart), apart, 0.0)
    return [np.asarray(total * (UNIT / MOVED)) for total in totals]


def moved(source: tirx.PrimFunc, number: int) -> tirx.PrimFunc:
    """Return a kernel in which function ``number`` returns a slightly larger value."""
    seen = -1

    def change(call: Call) -> tirx.Expr:
        nonlocal seen
        if not _is_approximated(call):
            return call
        seen += 1
        if seen != number:
            return call
        dtype = dtype_of(call)
        more, off = call * tirx.const(1 + MOVED, dtype), ABSOLUTE.get(_name(call), 0.0) * MOVED
        if not off:
            return more
        zero, far = tirx.const(0, dtype), tirx.const(off, dtype)
        return more + tirx.Select(call < zero, zero - far, far)  # both terms move away from 0

    return source.with_body(mapped(source.body, Call, change))


def _is_approximated(call: Call) -> bool:
    return _name(call) in APPROXIMATED


def _name(call: Call) -> str:
    return str(getattr(call.op, "name", "")).rpartition(".")[2]
