"""Rewrite TIR kernels so that they read narrowed constants and widen what they load."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tvm import tirx
from tvm.ir.expr import TensorLoad

from tvm_serenity import compat
from tvm_serenity.firmware.lower.narrow import HALVES, NIBBLES
from tvm_serenity.kernels.nodes import mapped

_HALF_STEP = 112
"""The exponent bias of float32 minus the bias of float16."""


def widening(kernel: tirx.PrimFunc, forms: Mapping[int, tuple[str, int]]) -> Any:
    """Return ``kernel`` with narrowed constants as parameters, widened on load.

    ``forms`` gives ``narrow.Narrow.form`` by parameter position. The scales of an int8 constant
    become a parameter after it.
    """
    params: list[Any] = []
    widened: dict[Any, Callable[[tuple[Any, ...]], Any]] = {}
    renamed: dict[Any, Any] = {}
    for position, old in enumerate(kernel.params):
        if position not in forms:
            params.append(old)
            continue
        dtype, axis = forms[position]
        shape = compat.buffer_shape(old)
        held = ((math.prod(shape) + 1) // 2,) if dtype == NIBBLES else shape
        new = tirx.decl_buffer(held, dtype, old.name)
        renamed[old] = new
        params.append(new)
        if dtype == HALVES:
            widened[old] = partial(_of_half, new)
            continue
        if dtype == NIBBLES:
            widened[old] = partial(_of_nibble, new, shape)
            continue
        count = 1 if axis < 0 else shape[axis]
        scales = tirx.decl_buffer((count,), "float32", f"{old.name}_scales")
        params.append(scales)
        widened[old] = partial(_of_steps, new, scales, axis)

    def load(part: TensorLoad) -> Any:
        wide = widened.get(part.source)
        return part if wide is None else wide(tuple(part.indices))

    body = mapped(kernel.body, TensorLoad, load)
    body = mapped(body, tirx.Var, lambda v: renamed.get(v, v))
    return tirx.PrimFunc(params, body, kernel.ret_type, attrs=kernel.attrs)


def _of_steps(stored: tirx.Var, scales: tirx.Var, axis: int, indices: tuple[Any, ...]) -> Any:
    return stored[indices].astype("float32") * scales[indices[axis] if axis >= 0 else 0]


def _of_half(stored: tirx.Var, indices: tuple[Any, ...]) -> Any:
    """Return a float16 element as float32: its bits shifted into place, times the bias difference.

    This is exact for subnormal numbers too; constants contain no infinities.
    """
    bits = stored[indices].astype("uint32")
    sign = tirx.shift_left(tirx.bitwise_and(bits, _u32(0x8000)), _u32(16))
    rest = tirx.shift_left(tirx.bitwise_and(bits, _u32(0x7FFF)), _u32(13))
    value = tirx.reinterpret("float32", tirx.bitwise_or(sign, rest))
    return value * tirx.const(2.0**_HALF_STEP, "float32")


def _u32(value: int) -> Any:
    return tirx.const(value, "uint32")


def _of_nibble(stored: tirx.Var, shape: Sequence[int], indices: tuple[Any, ...]) -> Any:
    """Return a 4-bit element as int8; the odd element of a pair is in the high half of the byte."""
    flat = indices[0]
    for extent, index in zip(shape[1:], indices[1:], strict=True):
        flat = flat * extent + index
    byte = stored[tirx.indexdiv(flat, 2)].astype("int32")
    above = tirx.indexmod(flat, 2).astype("int32")
    bits = tirx.bitwise_and(tirx.shift_right(byte, above * _i32(4)), _i32(15))
    return (tirx.bitwise_xor(bits, _i32(8)) - _i32(8)).astype("int8")


def _i32(value: int) -> Any:
    return tirx.const(value, "int32")
