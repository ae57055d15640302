"""The largest or smallest elements along an axis and their indices, without sorting.

TVM calls a packed sort function, which only its virtual machine has. Equal elements keep their
order, as in LiteRT and onnxruntime. Only the indices are stored: each search continues after the
previous element in that order.
"""

import math
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T  # noqa: N812

from tvm_serenity.kernels.build import written_for_any

Shape = tuple[int, ...]


def largest(
    shape: Shape, dtype: str, count: int, axis: int, index: str = "int32", smallest: bool = False
) -> tirx.PrimFunc:
    """Return the kernel ``(x, values, places)``: ``count`` elements along ``axis`` of ``x``."""
    around, extent, within = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    made = (*shape[:axis], count, *shape[axis + 1 :])
    whole, part = (around, extent, within), (around, count, within)

    def body(given: Any, results: Any, found: Any) -> None:
        x = T.decl_buffer(whole, dtype, data=given.data)
        values = T.decl_buffer(part, dtype, data=results.data)
        places = T.decl_buffer(part, index, data=found.data)
        with T.grid(around, within, count) as (o, i, k):
            _look(x, places, (o, k, i), extent, index, smallest)
            T.buffer_store(values, x[o, _place(places[o, k, i]), i], [o, k, i])

    held = {"x": (shape, dtype), "values": (made, dtype), "places": (made, index)}
    return written_for_any(held, body)


def _place(found: Any) -> Any:
    return found.astype("int64")


def _look(x: Any, places: Any, at: tuple[Any, ...], extent: int, index: str, low: bool) -> None:
    """Emit the search for the next element's index, stored in ``places[at]``.

    If all elements are NaN, the result is ``at``.
    """
    o, k, i = at
    none = tirx.const(-1, index)
    T.buffer_store(places, none, [o, k, i])
    with T.serial(extent) as j:
        value = x[o, j, i]
        before = _place(places[o, tirx.max(k - 1, tirx.const(0, "int64")), i])
        last = x[o, tirx.max(before, tirx.const(0, "int64")), i]
        behind = last < value if low else value < last
        follows = tirx.any(behind, tirx.all(value.equal(last), before < j))
        best = x[o, tirx.max(_place(places[o, k, i]), tirx.const(0, "int64")), i]
        better = value < best if low else best < value
        taken = tirx.any(places[o, k, i] < tirx.const(0, index), better)
        with T.If(tirx.all(tirx.any(k.equal(0), follows), taken)), T.Then():
            T.buffer_store(places, j.astype(index), [o, k, i])
    with T.If(places[o, k, i] < tirx.const(0, index)), T.Then():
        T.buffer_store(places, k.astype(index), [o, k, i])
