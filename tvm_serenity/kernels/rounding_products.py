"""Rounded high products as one vector instruction on AArch64 (``sqrdmulh``).

Fixed-point arithmetic multiplies 32-bit values by multipliers and takes ``round(a * b / 2**31)``
(``kernels.arithmetic.high_product``). Compilers use 64-bit products: five instructions per four
values. ``sqrdmulh`` rounds alike, and saturates only if both factors are -2**31, which no
multiplier is.

Vector loops get ``tirx.q_multiply_shift``, TVM's name for it, which is lowered here. Innermost
loops over adjacent elements with such products become vector loops.
"""

from collections.abc import Callable
from typing import Any

import tvm
from tvm import s_tir, tirx

from tvm_serenity.kernels.arithmetic import i32
from tvm_serenity.kernels.nodes import mapped, parts
from tvm_serenity.kernels.spec_read import kind_of

KINDS = ("Convolution", "Dense", "Packed", "Product", "Sum")
"""Kernels whose factors are 32-bit values and multipliers from 0 to 2**31 - 1."""
LANES = 4
"""32-bit numbers per register."""
MOST = 16
"""Results per vector loop: a register of bytes."""
Q31 = 31
INSTRUCTION = "llvm.aarch64.neon.sqrdmulh"


def with_rounding_products(kernel: tirx.PrimFunc) -> Any:
    """Return ``kernel`` with rounded vector products; itself if it has none."""
    if kind_of(kernel) not in KINDS:
        return kernel
    body = mapped(kernel.body, tirx.For, _in_vectors)
    return kernel.with_body(mapped(body, tirx.For, _with_products))


def _with_products(loop: tirx.For) -> Any:
    """Return a loop of full vectors with its products replaced; other loops unchanged."""
    vectors = loop.kind == tirx.ForKind.VECTORIZED and int(loop.extent) % LANES == 0
    return mapped(loop, tirx.Cast, _replaced) if vectors else loop


def _replaced(cast: tirx.Cast) -> Any:
    found = _factors(cast)
    return cast if found is None else tirx.q_multiply_shift(*found, i32(Q31), i32(0))


def _factors(cast: tirx.Cast) -> tuple[Any, Any] | None:
    """Return the 32-bit factors of a rounded product, None for other expressions."""
    shifted = cast.value
    if str(cast.ty.dtype) != "int32" or not isinstance(shifted, tirx.RShift):
        return None
    total, bits = shifted.a, shifted.b
    if not (_is(bits, Q31) and isinstance(total, tirx.Add) and _is(total.b, 1 << 30)):
        return None
    return _product(total.a)


def _product(wide: Any) -> tuple[Any, Any] | None:
    """Return the factors of a 64-bit product, also if it was distributed over a sum."""
    if isinstance(wide, tirx.Mul):
        return _both(_narrow(wide.a), _narrow(wide.b))
    if not isinstance(wide, tirx.Add):
        return None
    pair = _both(_product(wide.a), _product(wide.b))
    if pair is None or not isinstance(pair[0][1], tirx.IntImm):
        return None
    (a, number), (b, other) = pair
    return (a + b, number) if _is(other, int(number)) else None


def _both(a: Any, b: Any) -> tuple[Any, Any] | None:
    return None if a is None or b is None else (a, b)


def _narrow(wide: Any) -> Any:
    """Return the 32-bit expression that a 64-bit one extends, None if there is none."""
    if isinstance(wide, tirx.Cast) and str(wide.value.ty.dtype) == "int32":
        return wide.value
    if isinstance(wide, tirx.IntImm):
        return i32(int(wide)) if -(1 << 31) < int(wide) < 1 << 31 else None
    if isinstance(wide, tirx.Add | tirx.Sub):
        pair = _both(_narrow(wide.a), _narrow(wide.b))
        return None if pair is None else type(wide)(*pair)
    return None


def _is(value: Any, number: int) -> bool:
    return isinstance(value, tirx.IntImm) and int(value) == number


def _in_vectors(loop: tirx.For) -> Any:
    """Return a serial loop over adjacent elements as a vector loop, otherwise itself."""
    if loop.kind != tirx.ForKind.SERIAL or not isinstance(loop.extent, tirx.IntImm):
        return loop
    extent = int(loop.extent)
    width = next((w for w in (MOST, MOST // 2, LANES) if extent % w == 0), 0)
    if not width or parts(loop.body, tirx.For) or not _stores_neighbours(loop):
        return loop
    if all(_factors(cast) is None for cast in parts(loop.body, tirx.Cast)):
        return loop
    dtype = str(loop.loop_var.ty.dtype)
    lane = tirx.Var(loop.loop_var.name, dtype)
    zero, lanes = tirx.const(0, dtype), tirx.const(width, dtype)
    if extent == width:
        return _loop(loop, lane, (loop.min, lanes), lambda var: lane)
    outer = tirx.Var("vector", dtype)
    inner = _loop(loop, lane, (zero, lanes), lambda var: loop.min + outer * lanes + lane)
    count = tirx.const(extent // width, dtype)
    return tirx.For(outer, zero, count, tirx.ForKind.SERIAL, inner)


def _loop(loop: tirx.For, lane: Any, span: tuple[Any, Any], place: Callable[[Any], Any]) -> Any:
    """Return the loop's body for lanes, with ``place`` for its variable."""
    var = loop.loop_var
    body = mapped(loop.body, tirx.Var, lambda v: place(v) if v.same_as(var) else v)
    return tirx.For(lane, *span, tirx.ForKind.VECTORIZED, body)


def _stores_neighbours(loop: tirx.For) -> bool:
    """Return whether the loop is one store whose last index is its variable."""
    var, body = loop.loop_var, loop.body
    if isinstance(body, s_tir.SBlockRealize):
        bound = zip(body.block.iter_vars, body.iter_values, strict=True)
        own = [iter_var.var for iter_var, value in bound if value.same_as(var)]
        if len(own) != 1:
            return False
        var, body = own[0], body.block.body
    return isinstance(body, tirx.BufferStore) and body.indices[-1].same_as(var)


def _lowered(call: Any) -> Any:
    """Return ``q_multiply_shift`` as instructions if it is a rounded product of full registers."""
    a, b, bits, shift = call.args
    lanes = int(tvm.DataType(str(call.ty.dtype)).lanes)
    whole = str(call.ty.dtype).startswith("int32") and lanes % LANES == 0
    if not whole or not _is(_scalar(bits), Q31) or not _is(_scalar(shift), 0):
        return call
    made = []
    for first in range(0, lanes, LANES):
        every = list(range(first, first + LANES))
        pair = [tirx.Shuffle([factor], every) if lanes > LANES else factor for factor in (a, b)]
        made.append(tirx.call_llvm_pure_intrin(f"int32x{LANES}", INSTRUCTION, *pair))
    return made[0] if lanes == LANES else tirx.Shuffle(made, list(range(lanes)))


def _scalar(value: Any) -> Any:
    return value.value if isinstance(value, tirx.Broadcast) else value


tirx.register_intrin_lowering("tirx.q_multiply_shift", target="llvm.aarch64", f=_lowered, level=99)
