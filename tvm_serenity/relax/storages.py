"""Separate storages for tensors that external functions read or write.

A tensor in the arena has an offset, which DLPack states separately from the address and which many
external functions ignore; TVM passes them tensors that start where their storage starts. These
tensors share storages, each at offset 0 of one (``plan.pools``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm_serenity import compat
from tvm_serenity.memory import LiveRange
from tvm_serenity.plan.pools import share
from tvm_serenity.relax.read import BoundGraph


@dataclass(frozen=True)
class SharedStorages:
    """``arena``: the ranges placed in the arena; ``shared``: the storage of each other range.

    ``sizes``: of the storages in bytes.
    """

    arena: tuple[LiveRange, ...]
    shared: tuple[tuple[LiveRange, int], ...]
    sizes: tuple[int, ...]


def shared_storages(region: BoundGraph, ranges: Sequence[LiveRange]) -> SharedStorages:
    """Return which ranges of ``region`` are in the arena, and which in separate storages.

    Other tensors use a separate storage while it is free and large enough. Memory that external
    functions allocate themselves is not included.
    """
    calls = [compat.called_external(region.bindings[index].value) for index in region.run]
    outside = {op for op, symbol in enumerate(calls) if symbol is not None}
    ops = region.graph.ops
    touched = {t for op in outside for t in (*ops[op].inputs, *ops[op].outputs)}
    placed = [r for r in ranges if r.workspace_of not in outside]
    own = [r for r in placed if r.workspace_of is None and touched & set(r.tensors)]
    pools = share(own)
    lying = list(zip(own, pools.pool_of, strict=True))
    for r in sorted(placed, key=lambda r: (-r.size_bytes, r.start, r.name)):
        free = (i for i, size in enumerate(pools.sizes) if _fits(r, i, size, lying))
        index = None if r in own else next(free, None)
        if index is not None:
            lying.append((r, index))
    lent = {id(r) for r, _ in lying}
    arena = tuple(r for r in placed if id(r) not in lent)
    return SharedStorages(arena, tuple(lying), pools.sizes)


def _fits(new: LiveRange, index: int, size: int, lying: Sequence[tuple[LiveRange, int]]) -> bool:
    """Return whether a storage is large enough, and free while ``new`` lives."""
    there = [r for r, storage in lying if storage == index]
    return new.size_bytes <= size and all(r.stop <= new.start or new.stop <= r.start for r in there)
