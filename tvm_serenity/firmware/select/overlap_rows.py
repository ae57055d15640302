"""Where a row of a result may lie over a row that its kernel reads and that dies there.

As for whole layers (``over``), from the kernel that is called: records of the library's say in
which order these go over a row, elementwise ones from TIR read an element where they write it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm import tirx
from tvm.ir.expr import TensorLoad

from tvm_serenity.firmware.kernels.record import Passages
from tvm_serenity.firmware.passage import Passage, distance_bytes, starts_together
from tvm_serenity.kernels.nodes import parts, same
from tvm_serenity.kernels.rows import RowKernel
from tvm_serenity.rows.network import Network


def of_elements(rows: RowKernel, network: Network, layer: int) -> Passages:
    """Return the same of a row kernel from TIR: known where it is elementwise.

    Elements of one size are each read where they are written; of others, one is of one byte, which
    C lets alias, and the loops ascend.
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
    """Whether each element of the result is written once, and read of ``parameter`` there alone.

    ``kernel`` is lowered to loops. ``ascending``: in the order in which elements lie.
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
    """Return how far below a row of each input a row of the result must begin; None: apart."""
    return tuple(None if p is None else _distance(p) for p in passages)


def _distance(passage: Passage) -> int | None:
    return 0 if starts_together(passage) else distance_bytes(passage)


def farther(one: Sequence[int | None], two: Sequence[int | None]) -> tuple[int | None, ...] | None:
    """Return distances that do for both, None where one stays apart from what the other does."""
    if any((a is None) != (b is None) for a, b in zip(one, two, strict=True)):
        return None
    return tuple(
        None if a is None or b is None else max(a, b) for a, b in zip(one, two, strict=True)
    )
