"""One kernel for a loop: the kernels of its body, run in each turn on the same memory.

A turn computes the tensors of the body from the loop's states, from one row of each sequence, and
from tensors that no turn changes. Tensors of the body and states lie in workspaces, one for each
element type, which are planned as the arena of a graph: a tensor has its place from the kernel that
computes it to the last that reads it, a state during the whole turn. At the end of a turn the rows
of results are stored, and the new states are copied over the old ones.

All parameters are flat.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import tvm
from tvm import s_tir, tirx
from tvm.ir.expr import TensorLoad

from tvm_serenity.kernels.build import OPAQUE
from tvm_serenity.kernels.loops import without_blocks
from tvm_serenity.kernels.nodes import mapped
from tvm_serenity.plan import Buffer, plan

Held = tuple[tuple[int, ...], str]
"""The shape and element type of a tensor."""


@dataclass(frozen=True)
class LoopRow:
    """A row of a parameter: in turn ``t`` the elements from ``first + step * t``."""

    parameter: int
    first: int = 0
    step: int = 0


@dataclass(frozen=True)
class LoopState:
    """A state: parameter ``start`` holds it before the first turn; ``after`` is that of a turn."""

    tensor: int
    start: int
    after: int


@dataclass(frozen=True)
class LoopResult:
    """A result: ``tensor`` of the last turn, or of all turns if ``rows``.

    ``backwards``: the row of the last turn comes first.
    """

    tensor: int
    rows: bool = False
    backwards: bool = False


@dataclass(frozen=True)
class Loop:
    """A loop of ``turns`` turns.

    ``parameters``: the elements and types of its inputs. ``tensors``: shapes and types; each is a
    row of a parameter (``rows``), a state, or the result of one of ``calls``, which name a kernel
    and the tensors that are its parameters. A tensor is computed before it is read.
    """

    turns: int
    parameters: tuple[tuple[int, str], ...]
    tensors: tuple[Held, ...]
    rows: Mapping[int, LoopRow]
    states: tuple[LoopState, ...]
    calls: tuple[tuple[tirx.PrimFunc, tuple[int, ...]], ...]
    results: tuple[LoopResult, ...]

    @cached_property
    def offsets(self) -> Mapping[int, int]:
        """The element in its workspace at which each state and each tensor of the body begins."""
        lives = self._lives()
        found: dict[int, int] = {}
        for dtype in self.types:
            held = [t for t in lives if self.tensors[t][1] == dtype]
            buffers = [Buffer(f"{t}", *lives[t], self.count(t)) for t in held]
            found |= dict(zip(held, plan(buffers).offsets, strict=True))
        return found

    @property
    def types(self) -> tuple[str, ...]:
        """The element types of states and of tensors of the body."""
        return tuple(dict.fromkeys(self.tensors[t][1] for t in self._lives()))

    def count(self, tensor: int) -> int:
        """Return the elements of a tensor."""
        return prod(self.tensors[tensor][0])

    def _lives(self) -> dict[int, tuple[int, int]]:
        """Return the half-open range of calls during which each tensor has its place."""
        end = len(self.calls) + 1
        whole = {state.tensor for state in self.states}
        last = {state.after for state in self.states} | {r.tensor for r in self.results}
        lives = dict.fromkeys(whole, (0, end))
        for at, (_, given) in enumerate(self.calls):
            for tensor in given:
                if tensor in self.rows or tensor in whole:
                    continue
                begin = lives[tensor][0] if tensor in lives else at
                lives[tensor] = (begin, end if tensor in last else at + 1)
        return lives


def loop_kernel(loop: Loop) -> tirx.PrimFunc:
    """Return the kernel of a loop: flat inputs, then flat results."""
    return _Writer(loop).kernel()


class _Writer:
    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.turn = tirx.Var("turn", "int64")
        self.inputs = [_flat(f"given_{i}", *held) for i, held in enumerate(loop.parameters)]
        self.results = [
            _flat(
                f"result_{i}",
                loop.count(r.tensor) * (loop.turns if r.rows else 1),
                loop.tensors[r.tensor][1],
            )
            for i, r in enumerate(loop.results)
        ]
        ends = dict.fromkeys(loop.types, 0)
        for tensor, offset in loop.offsets.items():
            dtype = loop.tensors[tensor][1]
            ends[dtype] = max(ends[dtype], offset + loop.count(tensor))
        self.spaces = {dtype: _flat(f"body_{dtype}", n, dtype) for dtype, n in ends.items()}

    def kernel(self) -> tirx.PrimFunc:
        """Return the kernel."""
        loop = self.loop
        starts = [
            self.copied(self.place(s.tensor), (self.inputs[s.start], _number(0)), s.tensor)
            for s in loop.states
        ]
        turn = [self.called(kernel, given) for kernel, given in loop.calls]
        for result, buffer in zip(loop.results, self.results, strict=True):
            if result.rows:
                at = loop.turns - 1 - self.turn if result.backwards else self.turn
                place = buffer, at * loop.count(result.tensor)
                turn.append(self.copied(place, self.place(result.tensor), result.tensor))
        turn += [
            self.copied(self.place(s.tensor), self.place(s.after), s.tensor) for s in loop.states
        ]
        ends = [
            self.copied((buffer, _number(0)), self.place(result.tensor), result.tensor)
            for result, buffer in zip(loop.results, self.results, strict=True)
            if not result.rows
        ]
        turns = tirx.For(
            self.turn, _number(0), _number(loop.turns), tirx.ForKind.SERIAL, tirx.SeqStmt(turn)
        )
        body = tirx.SeqStmt([*starts, turns, *ends])
        spaces = list(self.spaces.values())
        block = s_tir.SBlock([], [], [], "loop", body, alloc_buffers=spaces)
        root = s_tir.SBlockRealize([], True, block)
        made = tirx.PrimFunc([*self.inputs, *self.results], root)
        made = made.with_attr({"tirx.noalias": True, "op_pattern": OPAQUE, "s_tir": True})
        return tirx.transform.ConvertSSA()(tvm.IRModule({"loop": made}))["loop"]

    def place(self, tensor: int) -> tuple[Any, Any]:
        """Return the buffer that holds a tensor, and where it begins there."""
        row = self.loop.rows.get(tensor)
        if row is not None:
            return self.inputs[row.parameter], row.first + self.turn * row.step
        return self.spaces[self.loop.tensors[tensor][1]], _number(self.loop.offsets[tensor])

    def copied(self, into: tuple[Any, Any], given: tuple[Any, Any], tensor: int) -> tirx.Stmt:
        """Return the loop that copies a tensor."""
        i = tirx.Var("i", "int64")
        value = tirx.BufferLoad(given[0], [given[1] + i])
        body = tirx.BufferStore(into[0], value, [into[1] + i])
        count = _number(self.loop.count(tensor))
        return tirx.For(i, _number(0), count, tirx.ForKind.SERIAL, body)

    def called(self, kernel: tirx.PrimFunc, given: Sequence[int]) -> tirx.Stmt:
        """Return the loops of a kernel on tensors at their places."""
        flat = _flattened(kernel)
        places = dict(zip(flat.params, map(self.place, given), strict=True))
        body = flat.body
        while isinstance(body, tirx.SeqStmt) and isinstance(body.seq[0], tirx.DeclBuffer):
            view, *rest = body.seq
            places[view.buffer] = places[_viewed(view)]
            body = tirx.SeqStmt(rest) if len(rest) > 1 else rest[0]

        def moved(access: Any) -> Any:
            stored = isinstance(access, tirx.BufferStore)
            place = places.get(access.buffer if stored else access.source)
            if place is None:
                return access
            (index,) = access.indices or [_number(0)]
            if stored:
                return tirx.BufferStore(place[0], access.value, [place[1] + index])
            return tirx.BufferLoad(place[0], [place[1] + index])

        return mapped(mapped(body, TensorLoad, moved), tirx.BufferStore, moved)


def _viewed(view: tirx.DeclBuffer) -> Any:
    """Return the parameter that a declaration at the start of a flattened kernel shows flat."""
    data = view.data
    return data if isinstance(data, tirx.Var) else data.args[0]


def _flattened(kernel: tirx.PrimFunc) -> Any:
    """Return a kernel as loops over flat buffers."""
    passes = [*without_blocks(), tirx.transform.FlattenBuffer()]
    module = tvm.IRModule({"kernel": kernel.with_attr("global_symbol", "kernel")})
    return tvm.transform.Sequential(passes)(module)["kernel"]


def _flat(name: str, count: int, dtype: str) -> Any:
    return tirx.decl_buffer((count,), dtype, name)


def _number(value: int) -> Any:
    return tirx.IntImm("int64", value)
