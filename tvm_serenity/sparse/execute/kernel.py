"""The TIR kernel that runs a network: it keeps sums in vector registers and tiles the batch.

The TVM script calls Python functions that emit its parts, unrolled over the vectors of a tile and
over the neurons of a group.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import tvm
from tvm import tirx
from tvm.script import tirx as T  # noqa: N812

from tvm_serenity.sparse.execute.plan import COPY, FRESH, FROM_INPUTS, OUTPUT, RELU
from tvm_serenity.sparse.execute.steps import LOOPS
from tvm_serenity.tvm_targets import has_feature, native


def lanes() -> int:
    """Return the number of floats in a vector register of this machine."""
    for feature, width in (("avx512f", 16), ("avx2", 8)):
        if has_feature(native(), feature):
            return width
    return 4


SUMS = {16: 24, 8: 12, 4: 12}
"""Number of registers that hold sums, by floats per register; the rest hold weights and values."""
LARGEST_TILE = 8
"""Limit on the number of vectors in a tile."""


def largest_tile(together: int = 1) -> int:
    """Return the largest tile in columns if ``together`` neurons are computed together."""
    width = lanes()
    return width * min(LARGEST_TILE, SUMS[width] // together)


@cache
def kernel(batch: int, tile: int, width: int, parallel: bool, together: int) -> Any:
    """Return the compiled kernel for ``batch`` columns in tiles of ``tile`` columns.

    ``width``: columns per vector. ``parallel``: run tiles on TVM's threads. The kernel runs groups
    of one neuron and of ``together`` neurons. Its arguments are x (inputs, batch), values
    (batch / tile, slots, tile), out (outputs, batch), then the arrays of :class:`Groups`.
    """
    module = tvm.IRModule({"sparse": _body(batch, tile, width, parallel, together)})
    return tvm.compile(module, target=native())["sparse"]


SLOT, FLAGS, PLACE = 0, 1, 2
"""Columns of ``Groups.member``."""
SIZE, COUNT, STEPS, MEMBER, LOAD, WEIGHT = range(6)
"""Columns of ``Groups.phase``."""


@dataclass(frozen=True)
class _Tile:
    """The state of the script that emits one tile of the batch.

    ``buffers``: the kernel's arguments by name. ``number``: the tile's number. ``tile`` and
    ``width``: columns of a tile and of a vector. ``sums``: the sums' buffers. ``at``: the positions
    of the next loads and weights.
    """

    buffers: dict[str, Any]
    number: tirx.Expr
    tile: int
    width: int
    sums: list[Any]
    at: tirx.Expr

    def get(self, name: str, *indices: tirx.Expr | int) -> Any:
        return self.buffers[name][indices if len(indices) > 1 else indices[0]]

    def vectors(self, first: tirx.Expr | int = 0) -> list[Any]:
        return [T.ramp(first + k, 1, self.width) for k in range(0, self.tile, self.width)]

    def splat(self, value: tirx.Expr) -> list[Any]:
        return [T.broadcast(value, self.width)] * (self.tile // self.width)

    def places(self, name: str, row: tirx.Expr) -> list[list[Any]]:
        """Return the indices of this tile's vectors in row ``row`` of ``values``, x or out."""
        if name == "values":
            return [[self.number, row, v] for v in self.vectors()]
        return [[row, v] for v in self.vectors(self.number * self.tile)]

    def read(self, name: str, row: tirx.Expr) -> list[Any]:
        return [self.buffers[name][tuple(place)] for place in self.places(name, row)]

    def write(self, name: str, row: tirx.Expr, vectors: list[Any]) -> None:
        for place, vector in zip(self.places(name, row), vectors, strict=True):
            T.buffer_store(self.buffers[name], vector, place)

    def sum(self, label: int) -> list[Any]:
        return [self.sums[label][v] for v in self.vectors()]

    def set(self, label: int, vectors: list[Any]) -> None:
        for v, vector in zip(self.vectors(), vectors, strict=True):
            T.buffer_store(self.sums[label], vector, [v])


def _copy(t: _Tile, member: tirx.Expr) -> None:
    """Emit the copy of an input to its slot."""
    t.write("values", t.get("member", member, SLOT), t.read("x", t.get("member", member, PLACE)))


def _start(t: _Tile, label: int, member: tirx.Expr) -> None:
    """Emit the start value of a sum."""
    with T.If(T.bitwise_and(t.get("member", member, FLAGS), FRESH) != 0):
        with T.Then():
            t.set(label, t.splat(t.get("bias", member)))
        with T.Else():
            t.set(label, t.read("values", t.get("member", member, SLOT)))


def _end(t: _Tile, label: int, member: tirx.Expr) -> None:
    """Emit the activation of a sum and its store."""
    flags = t.get("member", member, FLAGS)
    with T.If(T.bitwise_and(flags, RELU) != 0), T.Then():
        zero = T.broadcast(T.float32(0), t.width)
        t.set(label, [T.max(vector, zero) for vector in t.sum(label)])
    t.write("values", t.get("member", member, SLOT), t.sum(label))
    with T.If(T.bitwise_and(flags, OUTPUT) != 0), T.Then():
        t.write("out", t.get("member", member, PLACE), t.sum(label))


def _loop(t: _Tile, name: str, masks: tuple[int, ...], steps: tirx.Expr) -> None:
    """Emit one loop: each step loads values and adds their products to the sums of their masks."""
    feeds = [[m for m in range(len(t.sums)) if mask >> m & 1] for mask in masks]
    loads, weights = len(masks), sum(map(len, feeds))
    with T.serial(0, steps) as step:
        load, weight = t.at[0] + step * loads, t.at[1] + step * weights
        for fed in feeds:
            row = t.read(name, t.get("source", load))
            factors = [t.splat(t.get("weight", weight + i)) for i in range(len(fed))]
            for k, v in enumerate(t.vectors()):
                for m, factor in zip(fed, factors, strict=True):
                    T.buffer_store(t.sums[m], t.sums[m][v] + factor[k] * row[k], [v])
            load, weight = load + 1, weight + len(fed)
    T.buffer_store(t.at, t.at[0] + steps * loads, [0])
    T.buffer_store(t.at, t.at[1] + steps * weights, [1])


def _group(t: _Tile, size: int, steps: tirx.Expr, member: tirx.Expr) -> None:
    """Emit a group of ``size`` neurons; ``steps`` indexes the numbers of steps of its loops."""
    for label in range(size):
        _start(t, label, member + label)
    with T.If(T.bitwise_and(t.get("member", member, FLAGS), FROM_INPUTS) != 0):
        for name, branch in (("x", T.Then), ("values", T.Else)):
            with branch():
                for number, masks in enumerate(LOOPS[size]):
                    _loop(t, name, masks, t.get("steps", steps + number))
    for label in range(size):
        _end(t, label, member + label)


def _phase(t: _Tile, phase: tirx.Expr, together: int) -> None:
    """Emit the groups of a phase: input copies, or groups of one or ``together`` neurons."""
    for place, column in enumerate((LOAD, WEIGHT)):
        T.buffer_store(t.at, t.get("phase", phase, column), [place])
    for size in sorted({COPY, 1, together}):
        groups = T.serial(0, t.get("phase", phase, COUNT))
        with T.If(t.get("phase", phase, SIZE) == size), T.Then(), groups as g:
            member = t.get("phase", phase, MEMBER) + g * max(1, size)
            if size == COPY:
                _copy(t, member)
            else:
                _group(t, size, t.get("phase", phase, STEPS) + g * len(LOOPS[size]), member)


def _body(batch: int, tile: int, width: int, parallel: bool, together: int) -> Any:
    tiles = batch // tile
    over = T.parallel if parallel else T.serial

    @T.prim_func
    def sparse(
        x_handle: T.handle,
        values_handle: T.handle,
        out_handle: T.handle,
        phase_handle: T.handle,
        steps_handle: T.handle,
        member_handle: T.handle,
        bias_handle: T.handle,
        source_handle: T.handle,
        weight_handle: T.handle,
    ) -> None:
        T.func_attr({"global_symbol": "sparse", "tirx.noalias": True})
        inputs, slots, outputs = T.int64(), T.int64(), T.int64()
        phases, loops, members = T.int64(), T.int64(), T.int64()
        loads, weights = T.int64(), T.int64()
        x = T.match_buffer(x_handle, (inputs, batch), "float32", align=4)
        values = T.match_buffer(values_handle, (tiles, slots, tile), "float32")
        out = T.match_buffer(out_handle, (outputs, batch), "float32", align=4)
        phase = T.match_buffer(phase_handle, (phases, 6), "int32")
        steps = T.match_buffer(steps_handle, (loops,), "int32")
        member = T.match_buffer(member_handle, (members, 3), "int32")
        bias = T.match_buffer(bias_handle, (members,), "float32")
        source = T.match_buffer(source_handle, (loads,), "int32")
        weight = T.match_buffer(weight_handle, (weights,), "float32")
        buffers = T.meta_var(
            {"x": x, "values": values, "out": out, "phase": phase, "steps": steps}
            | {"member": member, "bias": bias, "source": source, "weight": weight}
        )
        for b in over(tiles):
            sums = T.meta_var(_sums(tile, together))
            at = T.alloc_buffer((2,), "int32")
            for p in T.serial(phases):
                _phase(_Tile(buffers, b, tile, width, sums, at), p, together)

    return sparse


def _sums(tile: int, together: int) -> list[Any]:
    """Return the buffers that hold sums.

    Each buffer has the default scope and less than 1 KB, TVM's limit for the stack, so that LLVM
    promotes it to registers. The scope "local" would put it in TVM's workspace, with stores after
    every loop.
    """
    return [T.alloc_buffer((tile,), "float32") for _ in range(together)]
