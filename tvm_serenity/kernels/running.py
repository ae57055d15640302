"""Running sums and products of stored values, rescaled element by element."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from tvm import te, tirx
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity.kernels.arithmetic import clamped, i32, i64, scaled
from tvm_serenity.kernels.build import prim_func, written_for_any
from tvm_serenity.kernels.fixed16 import named
from tvm_serenity.kernels.records import Requantise, Shape


@dataclass(frozen=True)
class Running:
    """Stored values of ``shape``, minus ``zero``, along ``axes``; ``finish``: requantisation."""

    shape: Shape
    dtype: str
    zero: int
    axes: tuple[int, ...]
    finish: Requantise


def sum_of_all(spec: Running, count: int, start: int, shift: int) -> Any:
    """Return the kernel ``(inputs..., result)`` of the sum of ``count`` tensors and ``start``.

    Sums times ``2**shift`` wrap in 32 bits before the requantisation.
    """
    given = [te.placeholder(spec.shape, spec.dtype, f"x{i}") for i in range(count)]

    def value(*at: tirx.Var) -> Any:
        total = i32(start - count * spec.zero)
        for x in given:
            total = total + x(*at).astype("int32")
        return _finished(spec, total, shift)

    return prim_func([*given, te.compute(spec.shape, value, name="out")])


def sums_so_far(spec: Running, start: int, shift: int, *, exclusive: bool, reverse: bool) -> Any:
    """Return the kernel ``(x, result)`` of running sums along the axis, each plus ``start``."""
    (axis,) = spec.axes

    def body(x: Any, result: Any) -> None:
        with _around(spec) as at:
            total = T.alloc_buffer((1,), "int32")
            T.buffer_store(total, i32(start), [0])
            with T.serial(spec.shape[axis]) as k:
                place = list(at)
                place[axis] = i32(spec.shape[axis] - 1) - k if reverse else k
                here = named(x[tuple(place)].astype("int32") - i32(spec.zero))
                if exclusive:
                    T.buffer_store(result, _finished(spec, total[0], shift), place)
                T.buffer_store(total, total[0] + here, [0])
                if not exclusive:
                    T.buffer_store(result, _finished(spec, total[0], shift), place)

    return _kernel(spec, spec.shape, body)


def product(spec: Running) -> Any:
    """Return the kernel ``(x, result)`` of products over axes, which keep extent 1."""
    made = tuple(1 if i in spec.axes else e for i, e in enumerate(spec.shape))
    times = partial(scaled, m=spec.finish.multiplier, rounding="wide")

    def body(x: Any, result: Any) -> None:
        with _around(spec) as at:
            total, first = (T.alloc_buffer((1,), "int32") for _ in range(2))
            T.buffer_store(first, i32(1), [0])
            with ExitStack() as loops:
                place = list(at)
                for axis in spec.axes:
                    place[axis] = loops.enter_context(T.serial(spec.shape[axis]))
                here = named(x[tuple(place)].astype("int32") - i32(spec.zero))
                with T.If(first[0].equal(i32(1))):
                    with T.Then():
                        T.buffer_store(total, here, [0])
                    with T.Else():
                        wide = total[0].astype("int64") * here.astype("int64")
                        T.buffer_store(total, times(wide), [0])
                T.buffer_store(first, i32(0), [0])
            whole = times(total[0].astype("int64")).astype("int64")
            end = (whole + i64(spec.finish.zero_point)).astype("int32")
            T.buffer_store(result, _clamped(spec, end), at)

    return _kernel(spec, made, body)


def _kernel(spec: Running, made: Sequence[int], body: Callable[..., None]) -> Any:
    out = spec.finish.dtype
    return written_for_any({"x": (spec.shape, spec.dtype), "result": (tuple(made), out)}, body)


@contextmanager
def _around(spec: Running) -> Iterator[list[Any]]:
    """Return loops over the other axes of ``spec``; the index of its own axes is 0."""
    with ExitStack() as loops:
        yield [
            i32(0) if i in spec.axes else loops.enter_context(T.serial(extent))
            for i, extent in enumerate(spec.shape)
        ]


def _finished(spec: Running, total: tirx.Expr, shift: int) -> Any:
    wide = (total.astype("int64") * i64(1 << shift)).astype("int32")
    finish = spec.finish
    whole = scaled(wide, finish.multiplier, finish.rounding) + i32(finish.zero_point)
    return _clamped(spec, whole)


def _clamped(spec: Running, whole: tirx.Expr) -> Any:
    return clamped(whole, spec.finish.low, spec.finish.high, spec.finish.dtype)
