"""Kernels of TFLM's signal library on channel levels."""

from functools import partial
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity.kernels.arithmetic import i32
from tvm_serenity.kernels.build import written_for_any
from tvm_serenity.kernels.fixed16 import named
from tvm_serenity.kernels.records import Subtraction

SEGMENT_BITS = 9
"""Bits of a 16-bit fraction within a segment of the logarithm table."""


def _u32(value: int) -> Any:
    return tirx.const(value, "uint32")


def _u64(value: int) -> Any:
    return tirx.const(value, "uint64")


def _unsigned(value: Any) -> Any:
    return named(value, "uint32")


def square_root(channels: int) -> tirx.PrimFunc:
    """Return the kernel ``(x, bits, result)``: bitwise, in 32 bits if x has no more."""

    def body(x: Any, bits: Any, result: Any) -> None:
        with T.serial(channels) as c:
            shift = named(tirx.max(tirx.min(bits[0], i32(31)), i32(0)))
            with T.If(tirx.shift_right(x[c], _u64(32)).astype("uint32").equal(_u32(0))):
                with T.Then():
                    root = _root(x[c].astype("uint32"), "uint32")
                    T.buffer_store(result, tirx.shift_right(root, shift.astype("uint32")), [c])
                with T.Else():
                    root = _root(x[c], "uint64").astype("uint32")
                    T.buffer_store(result, tirx.shift_right(root, shift.astype("uint32")), [c])

    kept = {"x": ((channels,), "uint64"), "bits": ((1,), "int32")}
    return written_for_any({**kept, "result": ((channels,), "uint32")}, body)


def _root(value: Any, dtype: str) -> Any:
    """Return the rounded root of a number."""
    width = int(dtype.removeprefix("uint"))
    left, root, bit = (T.alloc_buffer((1,), dtype) for _ in range(3))
    T.buffer_store(left, value, [0])
    T.buffer_store(root, tirx.const(0, dtype), [0])
    T.buffer_store(bit, tirx.const(1 << (width - 2), dtype), [0])
    one, two = tirx.const(1, dtype), tirx.const(2, dtype)
    with T.serial(width // 2):
        tried = named(root[0] + bit[0], dtype)
        fits = named(tirx.Select(left[0] >= tried, i32(1), i32(0)))
        half = named(tirx.shift_right(root[0], one), dtype)
        with T.If(fits.equal(i32(1))):
            with T.Then():
                T.buffer_store(left, left[0] - tried, [0])
                T.buffer_store(root, half + bit[0], [0])
            with T.Else():
                T.buffer_store(root, half, [0])
        T.buffer_store(bit, tirx.shift_right(bit[0], two), [0])
    most = tirx.const((1 << (width // 2)) - 1, dtype)
    up = tirx.all(left[0] > root[0], tirx.NE(root[0], most))
    return named(tirx.Select(up, root[0] + one, root[0]), dtype)


def subtraction(spec: Subtraction) -> tirx.PrimFunc:
    """Return the kernel ``(x, estimate, result, estimate')``."""
    levels = ((spec.channels,), "uint32")
    names = ("x", "before", "result", "after")
    return written_for_any(dict.fromkeys(names, levels), partial(_subtraction, spec))


def _subtraction(spec: Subtraction, x: Any, before: Any, result: Any, after: Any) -> None:
    with T.serial(spec.channels) as c:
        odd = named(tirx.bitwise_and(c, i32(1)))

        def of(pair: tuple[int, int]) -> Any:
            first, second = (_u64(value) for value in pair)
            return first if pair[0] == pair[1] else tirx.Select(odd > i32(0), second, first)

        value = _unsigned(x[c])
        scaled = _unsigned(tirx.shift_left(value, _u32(spec.scale)))
        new = scaled.astype("uint64") * of(spec.smoothing)
        old = before[c].astype("uint64") * of(spec.rest)
        held = _unsigned(tirx.shift_right(new + old, _u64(spec.bits)).astype("uint32"))
        used = _unsigned(tirx.min(held, scaled))
        T.buffer_store(after, used if spec.clamps else held, [c])
        share = value.astype("uint64") * _u64(spec.least)
        floor = _unsigned(tirx.shift_right(share, _u64(spec.bits)).astype("uint32"))
        rest = _unsigned(tirx.shift_right(_unsigned(scaled - used), _u32(spec.scale)))
        T.buffer_store(result, tirx.max(rest, floor), [c])


def pcan(channels: int, shift: int, entries: int) -> tirx.PrimFunc:
    """Return the kernel ``(x, noise, table, result)``."""
    levels = ((channels,), "uint32")

    def body(x: Any, noise: Any, table: Any, result: Any) -> None:
        with T.serial(channels) as c:
            gain = _gain(_unsigned(noise[c]), table)
            product = x[c].astype("uint64") * gain.astype("uint32").astype("uint64")
            ratio = _unsigned(tirx.shift_right(product, _u64(shift)).astype("uint32"))
            with T.If(ratio < _u32(8192)):
                with T.Then():
                    square = _unsigned(ratio * ratio)
                    T.buffer_store(result, tirx.shift_right(square, _u32(20)), [c])
                with T.Else():
                    T.buffer_store(result, tirx.shift_right(ratio, _u32(6)) - _u32(64), [c])

    kept = {"x": levels, "noise": levels, "table": ((entries,), "int16")}
    return written_for_any({**kept, "result": levels}, body)


def _gain(level: Any, table: Any) -> Any:
    """Return the value of the table's parabola for a noise level, in 16 bits."""
    made = T.alloc_buffer((1,), "int32")
    with T.If(level <= _u32(2)):
        with T.Then():
            T.buffer_store(made, table[level.astype("int32")].astype("int32"), [0])
        with T.Else():
            zeros = named(tirx.clz(tirx.max(level, _u32(1)).astype("int32")).astype("int32"))
            top = tirx.shift_left(level, zeros.astype("uint32"))  # its highest bit at bit 31
            place = tirx.bitwise_and(tirx.shift_right(top, _u32(21)), _u32(1023))
            at = named(i32(4 * 32 - 6) - zeros * i32(4))
            first = named(table[at].astype("int32"))
            second, third = (named(table[at + i32(k)].astype("int32")) for k in (1, 2))
            inside = named(place.astype("int32"))
            slope = tirx.shift_right(third * inside, i32(5)) + second * i32(32)
            value = tirx.shift_right(named(slope) * inside + i32(1 << 14), i32(15)) + first
            T.buffer_store(made, named(value).astype("int16").astype("int32"), [0])
    return made[0]


def logarithm(channels: int, bits: int, scale: int) -> tirx.PrimFunc:
    """Return the kernel ``(x, table, result)``."""

    def body(x: Any, table: Any, result: Any) -> None:
        with T.serial(channels) as c:
            value = _unsigned(tirx.shift_left(x[c], _u32(bits)))
            with T.If(value > _u32(1)):
                with T.Then():
                    made = _log(value, table, scale)
                    T.buffer_store(result, tirx.min(made, _u32(32767)).astype("int16"), [c])
                with T.Else():
                    T.buffer_store(result, tirx.const(0, "int16"), [c])

    kept = {"x": ((channels,), "uint32"), "table": ((129,), "uint16")}
    return written_for_any({**kept, "result": ((channels,), "int16")}, body)


def _log(value: Any, table: Any, scale: int) -> Any:
    zeros = named(tirx.clz(value.astype("int32")).astype("int32"))
    # The bits below the highest one, as a fraction of 31 bits, then of 16.
    top = tirx.shift_left(_unsigned(tirx.shift_left(value, zeros.astype("uint32"))), _u32(1))
    fraction = named(tirx.shift_right(_unsigned(top), _u32(16)).astype("int32"))
    segment = named(tirx.shift_right(fraction, i32(SEGMENT_BITS)))
    low = named(table[segment].astype("int32"))
    high = named(table[segment + i32(1)].astype("int32"))
    within = named(tirx.bitwise_and(fraction, i32((1 << SEGMENT_BITS) - 1)))
    rise = tirx.shift_right((high - low) * within, i32(16))
    whole = (i32(31) - zeros) * i32(65536)
    base2 = _unsigned(named(whole + fraction + low + rise).astype("uint32"))
    product = base2.astype("uint64") * _u64(45426) + _u64(32768)
    natural = _unsigned(tirx.shift_right(product, _u64(16)).astype("uint32"))
    # TVM's compilers take it that no sum or product of unsigned numbers wraps around.
    low = _unsigned((natural.astype("uint64") * _u64(scale)).astype("uint32"))
    scaled = _unsigned((low.astype("uint64") + _u64(32768)).astype("uint32"))
    return _unsigned(tirx.shift_right(scaled, _u32(16)))
