"""Whether, and at which distance, the result of a kernel may overlap the kernel's input.

This depends on the chosen kernel. Library kernels declare in which order they access pixels.
Kernels from TIR may overlap if they compute the rows of an unsplit result in order (``by_lines``),
or if a row kernel reads each element where it writes it (``of_elements``); other kernels may not.
``tvm_serenity.plan`` places these overlaps, ``firmware.check`` replays them byte by byte, and the
comparisons of the build run them.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from tvm import tirx
from tvm.ir.expr import TensorLoad

from tvm_serenity import compat
from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.kernels.record import Passages
from tvm_serenity.firmware.passage import Passage, least_distance
from tvm_serenity.kernels.nodes import parts, same
from tvm_serenity.kernels.rows import RowKernel, has_rows, row_kernel
from tvm_serenity.rows.network import Network


def by_lines(kernel: Any) -> Passage | None:
    """Return how an unsplit TIR kernel accesses its first parameter; None if not row by row.

    ``kernel`` has not been lowered. Its outermost loop must compute the rows of its result in order
    (``row_kernel``); within a row, elements may be read and written in any order.
    """
    shapes = [compat.buffer_shape(p) for p in _ends(kernel)]
    try:
        slots = row_kernel(kernel, (0,)).slots
    except UnsupportedError:
        return None
    if not all(has_rows(shape) and shape[1] > 1 for shape in shapes) or not slots:
        return None
    (_, height, width, channels), (_, lines, pixels, out_channels) = shapes
    known = [(y, row) for slot in slots for y, row in enumerate(slot.rows) if row is not None]
    step = _straight([slot.rows for slot in slots])
    if step is None:
        return None
    low = min(row - y * step for y, row in known)
    count = max(row - y * step for y, row in known) - low + 1
    size, out_size = (np.dtype(compat.buffer_dtype(p)).itemsize for p in _ends(kernel))
    return Passage(
        height,
        width,
        channels * size,
        lines,
        pixels,
        out_channels * out_size,
        (count, width),
        (step, 0),
        top=-low,
        together=pixels,
    )


def _ends(kernel: Any) -> tuple[Any, Any]:
    return kernel.params[0], kernel.params[-1]


def _straight(rows: Sequence[Sequence[int | None]]) -> int | None:
    """Return the row step from one result row to the next if all slots share it, else None."""
    steps = {b - a for slot in rows for a, b in pairwise(slot) if a is not None and b is not None}
    return steps.pop() if len(steps) == 1 else None


def of_elements(rows: RowKernel, network: Network, layer: int) -> Passages:
    """Return how a row kernel from TIR accesses its input rows, known if it is elementwise.

    Elements of equal size are read where they are written. For different sizes, one of them must be
    one byte, because C lets byte types alias, and the loops must ascend.
    """
    found = network.layers[layer]
    made = network.features[found.outputs[0]]
    if len(rows.variants) != 1 or len(rows.slots) != len(found.inputs) or not made.dtype:
        return (None,) * len(found.inputs)
    passages: list[Passage | None] = []
    for index, read in enumerate(network.features[f] for f in found.inputs):
        size, out_size = (np.dtype(f.dtype or made.dtype).itemsize for f in (read, made))
        passage = None
        if read.row_bytes // size == made.row_bytes // out_size:
            if read.dtype == made.dtype and elementwise(rows.variants[0], index):
                passage = Passage(1, 1, made.row_bytes, 1, 1, made.row_bytes, planes=True)
            elif 1 in (size, out_size) and elementwise(rows.variants[0], index, ascending=True):
                count = made.row_bytes // out_size
                passage = Passage(1, count, size, 1, count, out_size)
        passages.append(passage)
    return tuple(passages)


def elementwise(kernel: tirx.PrimFunc, parameter: int, *, ascending: bool = False) -> bool:
    """Return whether each result element is stored once, from the same index of ``parameter``.

    ``kernel`` is lowered to loops. ``ascending``: elements must also be visited in memory order.
    """
    taken, stores = kernel.params[parameter], parts(kernel.body, tirx.BufferStore)
    if len(stores) != 1 or not stores[0].buffer.same_as(kernel.params[-1]):
        return False
    indices = [i for i in stores[0].indices if not isinstance(i, tirx.IntImm)]
    loops = [loop.loop_var for loop in reversed(parts(kernel.body, tirx.For))]
    if len(loops) != len(indices):
        return False
    pairs = zip(loops, indices, strict=True)
    ordered = all(i.same_as(v) for v, i in pairs)
    if not ordered and (ascending or not all(any(i.same_as(v) for i in indices) for v in loops)):
        return False

    def reads(node: tirx.Stmt | tirx.Expr) -> list[Any]:
        return [r for r in parts(node, TensorLoad) if r.source.same_as(taken)]

    inside = reads(stores[0].value)
    here = all(same(r.indices, stores[0].indices) for r in inside)
    return bool(inside) and here and len(inside) == len(reads(kernel.body))


def distances(passages: Passages) -> tuple[int | None, ...]:
    """Return how far below each input row a result row must begin; None if they may not overlap."""
    return tuple(None if p is None else least_distance(p) for p in passages)


def farther(one: Sequence[int | None], two: Sequence[int | None]) -> tuple[int | None, ...] | None:
    """Return distances that suffice for both kernels; None if only one may overlap."""
    if any((a is None) != (b is None) for a, b in zip(one, two, strict=True)):
        return None
    return tuple(
        None if a is None or b is None else max(a, b) for a, b in zip(one, two, strict=True)
    )
