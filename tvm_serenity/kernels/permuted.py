"""Kernels that read and write tensors with permuted axes: a transpose as an index map."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import tvm
from tvm import s_tir, tirx

from tvm_serenity import compat
from tvm_serenity.kernels.loops import blocks_of
from tvm_serenity.kernels.pointwise import add, lookup, multiply
from tvm_serenity.kernels.records import BatchMatmul, Lookup, Product, RowSoftmax, Sum
from tvm_serenity.kernels.spec import SPEC, described
from tvm_serenity.kernels.spec_read import kind_of, spec_of

SWAPPED = (0, 2, 1, 3)
"""The axes of a tensor [batch, heads, tokens, channels] that is stored token by token."""
_ON_ELEMENTS = {kind.__name__ for kind in (Lookup, Product, Sum)}


def permuted(kernel: tirx.PrimFunc, axes: Mapping[int, Sequence[int]]) -> Any:
    """Return ``kernel`` (blocks, one per stage) on stored tensors with permuted axes.

    ``axes``: by parameter, the axes of the stored tensor, as the argument of a transpose. A result
    with the axes ``SWAPPED`` is computed in the order in which it is stored, and so are the stages
    before it. Products keep their records, with the axes, and softmax if the axes of both tensors
    are swapped; another kernel that is not elementwise has none, which would describe other shapes.
    """
    if all(tuple(order) == SWAPPED for order in axes.values()):
        shapes = {i: [compat.buffer_shape(kernel.params[i])[a] for a in SWAPPED] for i in axes}
        made = _on_elements(kernel, shapes)
        if made is not None:
            return made
    schedule = s_tir.Schedule(tvm.IRModule({"main": kernel}))
    shape = list(compat.buffer_shape(kernel.params[-1]))
    swaps = tuple(axes.get(len(kernel.params) - 1, ())) == SWAPPED
    for block, kind, number, buffer in list(_buffers(schedule)):
        index = next((i for i, p in enumerate(kernel.params) if p.same_as(buffer)), None)
        order: Sequence[int] | None = None
        if index is not None:
            order = axes.get(index)
        elif swaps and list(compat.buffer_shape(buffer))[:3] == shape[:3]:
            order = SWAPPED[: len(compat.buffer_shape(buffer))]
        if order is not None:
            schedule.transform_layout(block, (kind, number), _index_map(order))
    for block in blocks_of(schedule) if swaps else ():
        extents = [int(schedule.get(loop).extent) for loop in schedule.get_loops(block)]
        if extents[:3] == shape[:3]:
            axes_of_block = (*SWAPPED[:3], *range(3, len(extents)))
            schedule.transform_block_layout(block, _index_map(axes_of_block))
    made = schedule.mod["main"].without_attr("global_symbol")
    known, orders = kind_of(kernel), [tuple(axes.get(i, ())) for i in range(len(kernel.params))]
    if known == BatchMatmul.__name__:
        first, second, result = orders
        return described(made, replace(spec_of(kernel), axes=(first, second, result)))
    if known == RowSoftmax.__name__ and orders[0] == orders[-1] == SWAPPED:
        spec = spec_of(kernel)
        return described(made, replace(spec, shape=tuple(spec.shape[a] for a in SWAPPED)))
    return made.without_attr(SPEC)


def _on_elements(kernel: tirx.PrimFunc, shapes: Mapping[int, Sequence[int]]) -> Any:
    """Return an elementwise kernel with its record on tensors of other shapes.

    None for other kernels, and if a parameter that keeps its shape has more than its last axis,
    because it might be broadcast along other axes then.
    """
    last = len(kernel.params) - 1
    if kind_of(kernel) not in _ON_ELEMENTS or last not in shapes:
        return None
    spec = spec_of(kernel)
    if isinstance(spec, Lookup):
        return lookup(tuple(shapes[last]), spec.source, spec.result)
    kept = [compat.buffer_shape(p) for i, p in enumerate(kernel.params) if i not in shapes]
    if any(math.prod(shape[:-1]) != 1 for shape in kept):
        return None
    left, right = (tuple(shapes.get(i, compat.buffer_shape(kernel.params[i]))) for i in (0, 1))
    pair = replace(spec.pair, shapes=(left, right))
    if tuple(pair.output_shape) != tuple(shapes[last]):
        return None
    if isinstance(spec, Sum):
        return add(replace(spec, pair=pair))
    return multiply(replace(spec, pair=pair))


def _buffers(schedule: s_tir.Schedule) -> Iterator[tuple[Any, str, int, Any]]:
    """Yield each buffer where it is first used: the block, "read" or "write", the region."""
    seen: list[Any] = []
    for block in blocks_of(schedule):
        realised = schedule.get(block)
        for kind, regions in (("read", realised.reads), ("write", realised.writes)):
            for number, region in enumerate(regions):
                if not any(region.source.same_as(other) for other in seen):
                    seen.append(region.source)
                    yield block, kind, number, region.source


def _index_map(order: Sequence[int]) -> tirx.IndexMap:
    return tirx.IndexMap.from_func(lambda *at: [at[axis] for axis in order], ndim=len(order))
