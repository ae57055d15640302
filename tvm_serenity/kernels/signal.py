"""Kernels of TFLM's signal library on samples and spectra."""

from functools import partial
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity.kernels.arithmetic import i32
from tvm_serenity.kernels.build import written_for_any
from tvm_serenity.kernels.fixed16 import named


def window(count: int, size: int, shift: int) -> tirx.PrimFunc:
    """Return the kernel ``(x, window, result)``."""
    samples = ((count, size), "int16")

    def body(x: Any, weights: Any, result: Any) -> None:
        with T.serial(count) as c, T.serial(size) as i:
            product = x[c, i].astype("int32") * weights[i].astype("int32")
            value = named(tirx.shift_right(product, i32(shift)))
            T.buffer_store(result, _narrow(value), [c, i])

    return written_for_any({"x": samples, "window": ((size,), "int16"), "result": samples}, body)


def auto_scale(size: int) -> tirx.PrimFunc:
    """Return the kernel ``(x, result, bits)``."""
    samples = ((size,), "int16")

    def body(x: Any, result: Any, bits: Any) -> None:
        largest = T.alloc_buffer((1,), "int32")
        T.buffer_store(largest, i32(0), [0])
        with T.serial(size) as i:
            value = named(x[i].astype("int32"))
            negative = tirx.Select(-value > largest[0], -value, largest[0])
            found = tirx.Select(value > largest[0], value, negative)
            T.buffer_store(largest, found.astype("int16").astype("int32"), [0])
        places = named(tirx.clz(tirx.max(largest[0], i32(1))) - i32(17))
        T.buffer_store(
            bits, tirx.Select(largest[0] > i32(0), tirx.max(places, i32(0)), i32(0)), [0]
        )
        with T.serial(size) as i:
            value = tirx.shift_left(x[i].astype("int32"), bits[0])
            T.buffer_store(result, value.astype("int16"), [i])

    return written_for_any({"x": samples, "result": samples, "bits": ((1,), "int32")}, body)


def energy(size: int, start: int, end: int) -> tirx.PrimFunc:
    """Return the kernel ``(x, result)`` of complex numbers; 0 outside of ``start`` to ``end``."""

    def body(x: Any, result: Any) -> None:
        with T.serial(size) as i:
            parts = [x[i, part].astype("int32") for part in range(2)]
            first, second = ((p * p).astype("uint32") for p in parts)
            inside = tirx.all(i >= start, i < end)
            zero = tirx.const(0, "uint32")
            T.buffer_store(result, tirx.Select(inside, first + second, zero), [i])

    return written_for_any({"x": ((size, 2), "int16"), "result": ((size,), "uint32")}, body)


def filter_bank(size: int, channels: int, weights: tuple[int, int]) -> tirx.PrimFunc:
    """Return the kernel ``(x, weights, unweights, starts, places, widths, result)``."""
    table = ((channels + 1,), "int16")
    return written_for_any(
        {
            "x": ((size,), "uint32"),
            "weights": ((weights[0],), "int16"),
            "unweights": ((weights[1],), "int16"),
            "starts": table,
            "places": table,
            "widths": table,
            "result": ((channels,), "uint64"),
        },
        partial(_filter_bank, channels),
    )


def _filter_bank(channels: int, *buffers: Any) -> None:
    x, weights, unweights, starts, places, widths, result = buffers
    zero = tirx.const(0, "int64")  # signed sums do not overflow; unsigned ones would wrap
    sums = T.alloc_buffer((1,), "int64")
    rest = T.alloc_buffer((1,), "int64")
    T.buffer_store(rest, zero, [0])
    with T.serial(channels + 1) as c:
        T.buffer_store(sums, rest[0], [0])
        T.buffer_store(rest, zero, [0])
        with T.serial(widths[c].astype("int32")) as j:
            value = named(x[starts[c].astype("int32") + j].astype("int64"), "int64")
            place = places[c].astype("int32") + j
            for total, factors in ((sums, weights), (rest, unweights)):
                factor = factors[place].astype("int64")
                T.buffer_store(total, total[0] + factor * value, [0])
        with T.If(c > 0), T.Then():
            T.buffer_store(result, sums[0].astype("uint64"), [c - 1])


def _narrow(x: Any) -> Any:
    """Return 32-bit ``x`` saturated to 16 bits."""
    return tirx.max(tirx.min(x, i32(32767)), i32(-32768)).astype("int16")
