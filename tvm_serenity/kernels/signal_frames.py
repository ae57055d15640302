"""Kernels of TFLM's signal library that keep samples between runs.

A queue has ``count`` rows of ``held`` samples; an empty row has one unused sample.
"""

from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity.kernels.arithmetic import i32
from tvm_serenity.kernels.build import written_for_any
from tvm_serenity.kernels.fixed16 import named


@dataclass(frozen=True)
class Queue:
    """Rows of ``given`` new samples after ``held`` older ones."""

    count: int
    held: int
    given: int
    dtype: str = "int16"

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the state."""
        return self.count, max(self.held, 1)

    def sample(self, before: Any, x: Any, row: Any, index: Any) -> Any:
        """Return a sample of a row by age, the oldest first."""
        if not self.held:
            return x[row, index]
        new = x[row, tirx.max(index - i32(self.held), i32(0))]
        old = before[row, tirx.min(index, i32(self.held - 1))]
        return tirx.Select(index < i32(self.held), old, new)

    def keep(self, before: Any, x: Any, after: Any, row: Any) -> None:
        """Emit the state for the next run."""
        if not self.held:
            T.buffer_store(after, before[row, 0], [row, 0])
            return
        with T.serial(self.held) as i:
            T.buffer_store(after, self.sample(before, x, row, i + i32(self.given)), [row, i])


def delay(queue: Queue) -> tirx.PrimFunc:
    """Return the kernel ``(x, before, result, after)`` of delayed samples."""
    new, kept = ((queue.count, queue.given), queue.dtype), (queue.shape, queue.dtype)

    def body(x: Any, before: Any, result: Any, after: Any) -> None:
        with T.serial(queue.count) as row:
            with T.serial(queue.given) as i:
                T.buffer_store(result, queue.sample(before, x, row, i), [row, i])
            queue.keep(before, x, after, row)

    return written_for_any({"x": new, "before": kept, "result": new, "after": kept}, body)


def framer(queue: Queue, step: int, size: int, needed: int) -> tirx.PrimFunc:
    """Return the kernel ``(x, before, seen, result, valid, after, seen')``.

    Frames have ``size`` samples and are ``step`` apart; frame ``needed`` is the first with samples.
    """
    frames = queue.given // step
    kept, one = (queue.shape, queue.dtype), ((1,), "int32")

    def body(x: Any, before: Any, seen: Any, *made: Any) -> None:
        result, valid, after, now = made
        known = named(seen[0])
        with T.serial(queue.count) as row:
            with T.serial(frames) as f, T.serial(size) as i:
                value = queue.sample(before, x, row, f * i32(step) + i)
                empty = tirx.const(0, queue.dtype)
                held = tirx.Select(known + f + i32(1) >= i32(needed), value, empty)
                T.buffer_store(result, held, [row, f, i])
            queue.keep(before, x, after, row)
        T.buffer_store(valid, known + i32(1) >= i32(needed), [0])
        T.buffer_store(now, tirx.min(known, i32(needed)) + i32(frames), [0])

    return written_for_any(
        {
            "x": ((queue.count, queue.given), queue.dtype),
            "before": kept,
            "seen": one,
            "result": ((queue.count, frames, size), queue.dtype),
            "valid": ((1,), "bool"),
            "after": kept,
            "now": one,
        },
        body,
    )


def stacker(queue: Queue, left: int, step: int) -> tirx.PrimFunc:
    """Return the kernel ``(x, before, seen, result, valid, after, seen')``.

    ``seen``: the number of frames in the queue, and whether any frame has arrived. The first frame
    is repeated ``left`` times before itself.
    """
    channels, size = queue.given, queue.held + queue.given
    frames = size // channels
    kept, two = (queue.shape, queue.dtype), ((2,), "int32")

    def body(x: Any, before: Any, seen: Any, *made: Any) -> None:
        result, valid, after, now = made
        first = named(tirx.Select(tirx.EQ(seen[1], i32(0)), i32(1), i32(0)))
        count = named(tirx.Select(first > i32(0), i32(left), seen[0]) + i32(1))
        full = named(tirx.Select(count >= i32(frames), i32(1), i32(0)))

        def at(index: Any) -> Any:
            again = x[0, tirx.floormod(index, i32(channels))]
            return tirx.Select(first > i32(0), again, queue.sample(before, x, 0, index))

        with T.serial(size) as i:
            empty = tirx.const(0, queue.dtype)
            T.buffer_store(result, tirx.Select(full > i32(0), at(i), empty), [i])
        if queue.held:
            with T.serial(queue.held) as i:
                T.buffer_store(after, at(i + i32(channels)), [0, i])
        else:
            queue.keep(before, x, after, 0)
        T.buffer_store(valid, full > i32(0), [0])
        T.buffer_store(now, count - full * i32(step), [0])
        T.buffer_store(now, i32(1), [1])

    return written_for_any(
        {
            "x": ((1, channels), queue.dtype),
            "before": kept,
            "seen": two,
            "result": ((size,), queue.dtype),
            "valid": ((1,), "bool"),
            "after": kept,
            "now": two,
        },
        body,
    )


def overlap_add(count: int, frames: int, size: int, step: int, dtype: str) -> tirx.PrimFunc:
    """Return the kernel ``(x, before, result, after)`` that adds frames ``step`` samples apart."""
    kept = ((count, size), dtype)

    def body(x: Any, before: Any, result: Any, after: Any) -> None:
        with T.serial(count) as row:
            with T.serial(size) as i:
                T.buffer_store(after, before[row, i], [row, i])
            with T.serial(frames) as f:
                with T.serial(size) as i:
                    T.buffer_store(after, _added(after[row, i], x[row, f, i]), [row, i])
                with T.serial(step) as i:
                    T.buffer_store(result, after[row, i], [row, f, i])
                if size > step:
                    with T.serial(size - step) as i:
                        T.buffer_store(after, after[row, i + i32(step)], [row, i])
                with T.serial(step) as i:
                    zero = tirx.const(0, dtype)
                    T.buffer_store(after, zero, [row, i + i32(size - step)])

    given = ((count, frames, size), dtype)
    made = ((count, frames, step), dtype)
    return written_for_any({"x": given, "before": kept, "result": made, "after": kept}, body)


def _added(a: Any, b: Any) -> Any:
    """Return the sum, saturated if the type has 16 bits."""
    if str(a.ty.dtype).startswith("float"):
        return a + b
    total = a.astype("int32") + b.astype("int32")
    return tirx.max(tirx.min(total, i32(32767)), i32(-32768)).astype("int16")
