"""Storages of their own for what external functions read or write.

A tensor in the arena starts at an offset, which DLPack states apart from the address and which
many functions of other backends do not look at; TVM gives them tensors that start where their
storage does. So these tensors share storages, each at offset 0 of one: the largest first, into the
first storage that is free all its life (Pisarchyk and Lee 2020, "greedy by size" for shared
objects).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm_serenity import compat
from tvm_serenity.memory import LiveRange
from tvm_serenity.relax.read import BoundGraph


@dataclass(frozen=True)
class SharedStorages:
    """``arena``: the ranges placed in the arena. ``shared``: the storage of each other range.

    ``sizes`` are those of the storages, in bytes.
    """

    arena: tuple[LiveRange, ...]
    shared: tuple[tuple[LiveRange, int], ...]
    sizes: tuple[int, ...]


def apart(region: BoundGraph, ranges: Sequence[LiveRange]) -> SharedStorages:
    """Return which ranges of ``region`` lie in the arena and which in storages of their own.

    What else fits into a storage while it is free lies there, too. What external functions
    allocate while they run is theirs, and nowhere.
    """
    calls = [compat.called_external(region.bindings[index].value) for index in region.run]
    outside = {op for op, symbol in enumerate(calls) if symbol is not None}
    ops = region.graph.ops
    touched = {t for op in outside for t in (*ops[op].inputs, *ops[op].outputs)}
    placed = [r for r in ranges if r.workspace_of not in outside]
    own = [r for r in placed if r.workspace_of is None and touched & set(r.tensors)]
    held: list[list[LiveRange]] = []
    shared = [(r, _into(held, r, opened=True)) for r in _largest_first(own)]
    sizes = tuple(others[0].size_bytes for others in held)
    rest = [(r, _into(held, r, opened=False)) for r in _largest_first(placed) if r not in own]
    within = [(r, index) for r, index in rest if index is not None]
    lent = {id(r) for r, _ in (*shared, *within)}
    arena = tuple(r for r in placed if id(r) not in lent)
    return SharedStorages(
        arena, tuple((r, i) for r, i in (*shared, *within) if i is not None), sizes
    )


def _largest_first(ranges: Sequence[LiveRange]) -> list[LiveRange]:
    return sorted(ranges, key=lambda r: (-r.size_bytes, r.start, r.name))


def _into(held: list[list[LiveRange]], new: LiveRange, *, opened: bool) -> int | None:
    """Put ``new`` into the first storage that is free and large enough, or ``opened`` for it."""
    for index, others in enumerate(held):
        fits = new.size_bytes <= others[0].size_bytes
        if fits and all(o.stop <= new.start or new.stop <= o.start for o in others):
            others.append(new)
            return index
    if not opened:
        return None
    held.append([new])
    return len(held) - 1
