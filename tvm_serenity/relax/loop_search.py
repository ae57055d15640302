"""Loops in a function: the same bindings again and again, each turn reading the one before.

Readers and importers write loops out: a recurrent layer of 100 steps is 100 times the bindings of a
step. A run of bindings is a loop if

1. the bindings of each turn are the same operators, with the same attributes and types,
2. each operand is, in all turns, the same constant or the same earlier tensor, a result at the same
   place of the same turn or of the turn before, or an evenly spaced row of the same tensor,
3. at least one turn reads the one before it, and turns share rows, results or constants: a chain of
   elementwise operators is no loop,
4. nothing between its bindings reads a result of it.

A row is a contiguous part of a tensor: a slice or an element along an axis with only axes of extent
one before it, in any shape.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import prod
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.operators import RELAX
from tvm_serenity.relax.bindings import bindings

LEAST_TURNS = 8
"""Shorter loops stay written out: each call may then have a kernel of its own, and its place."""
_MOST_STARTS = 32
"""How many occurrences of a binding are tried as the start of its second turn."""


def is_view(name: str) -> bool:
    """Return whether an operator shows the bytes of its input in another shape."""
    known = RELAX.get(name)
    return known is not None and known.storage.view


@dataclass(frozen=True)
class ContiguousPart:
    """The contiguous elements ``first`` to ``first + count - 1`` of ``source``."""

    source: Any
    first: int
    count: int


@dataclass(frozen=True)
class Same:
    """An operand that is the same in all turns: a constant, or a tensor from before the loop."""

    value: Any


@dataclass(frozen=True)
class EvenRows:
    """An operand that is a row of ``source``: from element ``first + step * turn``."""

    source: Any
    first: int
    step: int
    count: int


@dataclass(frozen=True)
class Inside:
    """An operand that binding ``place`` of the same turn makes."""

    place: int


@dataclass(frozen=True)
class Before:
    """An operand that binding ``place`` of the turn before makes; ``start`` in the first turn."""

    place: int
    start: Any


Operand = Same | EvenRows | Inside | Before


@dataclass(frozen=True)
class FoundLoop:
    """A loop: the variables of each turn, and the operands of each binding.

    ``values``: the bindings of one turn. ``last``: the place of its last binding in the function.
    """

    turns: tuple[tuple[Any, ...], ...]
    values: tuple[Any, ...]
    operands: tuple[tuple[Operand, ...], ...]
    last: int


def loops(mod: tvm.IRModule, function: relax.Function) -> list[FoundLoop]:
    """Return the loops of a function, in order."""
    return _Search(mod, function).found


def leaves(value: relax.Expr) -> list[Any]:
    """Return the variables and tensor literals that an expression reads, in order."""
    if isinstance(value, relax.Var) or compat.is_constant(value):
        return [value]
    if isinstance(value, relax.Tuple):
        return [leaf for part in value.fields for leaf in leaves(part)]
    if isinstance(value, relax.TupleGetItem):
        return leaves(value.tuple_value)
    if compat.is_call(value):
        return [leaf for argument in value.args for leaf in leaves(argument)]
    return []


class _Search:
    def __init__(self, mod: tvm.IRModule, function: relax.Function) -> None:
        self.mod = mod
        self.all = bindings(function)
        self.constants: dict[int, str] = {}
        self.signs: dict[Any, int] = {}
        self.parts = self._parts()
        self.run = [i for i, (var, _) in enumerate(self.all) if var not in self.parts]
        self.place = {self.all[i][0]: at for at, i in enumerate(self.run)}
        self.readers = self._readers()
        self.found = list(self._loops())

    def _parts(self) -> dict[Any, ContiguousPart]:
        """Return the variables that are rows of a tensor with enough of them for a loop."""
        parts: dict[Any, ContiguousPart] = {}
        for var, value in self.all:
            part = part_of(value, parts)
            if part is not None:
                parts[var] = part
        firsts: dict[Any, set[int]] = defaultdict(set)
        for part in parts.values():
            firsts[part.source].add(part.first)
        return {v: p for v, p in parts.items() if len(firsts[p.source]) >= LEAST_TURNS}

    def _readers(self) -> dict[Any, list[int]]:
        """Return the places, in all bindings, that read each variable."""
        readers: dict[Any, list[int]] = defaultdict(list)
        for i, (_, value) in enumerate(self.all):
            for leaf in leaves(value):
                readers[leaf].append(i)
        return readers

    def _loops(self) -> Iterator[FoundLoop]:
        signs = [self.sign(self.all[i][1]) for i in self.run]
        again: dict[int, list[int]] = defaultdict(list)
        for at, sign in enumerate(signs):
            again[sign].append(at)
        at = 0
        while at < len(signs):
            found = next(self._from(signs, again[signs[at]], at), None)
            if found is None:
                at += 1
            else:
                yield found
                at += len(found.turns) * len(found.values)

    def _from(self, signs: Sequence[int], alike: Sequence[int], start: int) -> Iterator[FoundLoop]:
        """Yield the loops that begin at a binding."""
        for second in [at for at in alike if at > start][:_MOST_STARTS]:
            size = second - start
            if start + LEAST_TURNS * size > len(signs):
                return
            turn, turns = signs[start:second], 1
            while signs[start + turns * size : start + (turns + 1) * size] == turn:
                turns += 1
            if turns >= LEAST_TURNS:
                found = self.loop(start, size, turns)
                if found is not None:
                    yield found

    def loop(self, start: int, size: int, turns: int) -> FoundLoop | None:
        """Return the longest loop of at most ``turns`` times ``size`` bindings, if there is one."""
        places = [self.run[start + i] for i in range(size * turns)]
        held = [[self.all[places[t * size + j]] for j in range(size)] for t in range(turns)]
        operands: list[tuple[Operand, ...]] = []
        for j in range(size):
            read = [leaves(turn[j][1]) for turn in held[:turns]]
            found = []
            for a in range(len(read[0])):
                one, turns = self.operand([r[a] for r in read[:turns]], start, size)
                if one is None or turns < LEAST_TURNS:
                    return None
                found.append(one)
            operands.append(tuple(found))
        every = [one for binding in operands for one in binding]
        held, places = held[:turns], places[: turns * size]
        made = {var for turn in held for var, _ in turn}
        between = (i for var in made for i in self.readers[var])
        inside = set(places)
        if any(i < places[-1] and i not in inside for i in between):
            return None
        shared = any(
            isinstance(one, EvenRows)
            or (isinstance(one, Same) and compat.is_constant(one.value) and _count(one.value) > 1)
            for one in every
        )
        if not shared or not any(isinstance(one, Before) for one in every):
            return None
        values = tuple(value for _, value in held[1])
        variables = tuple(tuple(var for var, _ in turn) for turn in held)
        return FoundLoop(variables, values, tuple(operands), places[-1])

    def operand(self, read: Sequence[Any], start: int, size: int) -> tuple[Operand | None, int]:
        """Return what an operand is, given what each turn reads, and for how many turns."""
        first, second = read[:2]
        at = self.place.get(second, -1) if isinstance(second, relax.Var) else -1
        if at >= start:
            turn, j = divmod(at - start, size)
            expected = [
                self.all[self.run[start + (t + turn - 1) * size + j]][0] if t + turn > 0 else first
                for t in range(len(read))
            ]
            held = _while(read, lambda t, one: bool(one.same_as(expected[t])))
            if turn == 1:
                return Inside(j), held
            earlier = compat.is_constant(first) or self.is_before(first, start)
            return (Before(j, first) if turn == 0 and earlier else None), held
        if isinstance(second, relax.Var) and second in self.parts:
            return self.rows(read, start)
        if compat.is_constant(second):
            held = _while(read, lambda _, one: compat.is_constant(one) and self.same(one, second))
            return Same(second), held
        held = _while(read, lambda _, one: bool(one.same_as(second)))
        return (Same(second) if self.is_before(second, start) else None), held

    def is_before(self, var: Any, start: int) -> bool:
        """Return whether a variable is known before binding ``start`` of the run."""
        root = self.parts[var].source if var in self.parts else var
        return self.place.get(root, -1) < start

    def rows(self, read: Sequence[Any], start: int) -> tuple[Operand | None, int]:
        parts = [self.parts.get(one) if isinstance(one, relax.Var) else None for one in read]
        first, second = parts[:2]
        if first is None or second is None or not self.is_before(read[0], start):
            return None, 0
        source, step = first.source, second.first - first.first

        def even(turn: int, _read: Any) -> bool:
            part = parts[turn]
            wanted = ContiguousPart(source, first.first + step * turn, first.count)
            return part is not None and part == wanted

        return EvenRows(source, first.first, step, first.count), _while(read, even)

    def same(self, one: Any, other: Any) -> bool:
        return self._text(one) == self._text(other)

    def _text(self, constant: Any) -> str:
        """Return a text that is equal for equal tensor literals."""
        array = compat.constant_array(constant)
        key = compat.constant_address(constant)
        held = f"{array.dtype} {array.shape} "
        if key not in self.constants:
            self.constants[key] = sha256(array.tobytes()).hexdigest()
        return held + self.constants[key]

    def sign(self, value: relax.Expr) -> int:
        """Return a number that is equal for bindings that differ in their operands alone."""
        return self.signs.setdefault(self._form(value), len(self.signs))

    def _form(self, value: relax.Expr) -> Any:
        types = tuple(str(leaf.ty) for leaf in leaves(value))
        if isinstance(value, relax.TupleGetItem):
            return "item", value.index, types
        if not compat.is_call(value):
            return type(value).__name__, types
        kernel = compat.called_kernel(value)
        name = compat.op_name(value)
        if kernel is not None:
            name += f" {compat.structural_hash(compat.anonymous(self.mod[kernel]))}"
        others = tuple(
            str(a) for a in value.args if not leaves(a) and not isinstance(a, tvm.ir.GlobalVar)
        )
        attrs = "" if value.attrs is None else compat.structural_hash(value.attrs)
        return name, attrs, others, types, str(value.ty)


def part_of(value: relax.Expr, parts: Mapping[Any, ContiguousPart]) -> ContiguousPart | None:
    """Return the contiguous part of a tensor that an expression is, given those of variables."""
    if not compat.is_call(value) or not value.args or not isinstance(value.args[0], relax.Var):
        return None
    name, source = compat.op_name(value), value.args[0]
    made = compat.constant_shape(value.ty) if compat.is_tensor(value.ty) else None
    shape = compat.constant_shape(source.ty) if compat.is_tensor(source.ty) else None
    if made is None or shape is None:
        return None
    whole = parts.get(source)
    if is_view(name):
        return whole
    if name == "relax.take":
        cut = _taken(value, shape)
    elif name == "relax.strided_slice":
        cut = _sliced(value, shape)
    else:
        return None
    if cut is None or prod(shape[: cut[0]]) != 1:
        return None
    first = cut[1] * prod(shape[cut[0] + 1 :])
    base = ContiguousPart(source, 0, 0) if whole is None else whole
    return ContiguousPart(base.source, base.first + first, prod(made))


def _taken(value: relax.Call, shape: Sequence[int]) -> tuple[int, int] | None:
    """Return axis and index of the only element that a ``take`` reads."""
    index, axis = value.args[1], value.attrs.axis
    if not compat.is_constant(index) or compat.constant_array(index).size != 1:
        return None
    at, along = int(compat.constant_array(index).reshape(())), 0 if axis is None else int(axis)
    along = along % len(shape) if shape else 0
    return (along, at) if shape and 0 <= at < shape[along] else None


def _sliced(value: relax.Call, shape: Sequence[int]) -> tuple[int, int] | None:
    """Return the axis of a slice without steps along one axis, and where it begins."""
    numbers = [
        None
        if not isinstance(argument, relax.Tuple)
        else [compat.scalar(p) for p in argument.fields]
        for argument in value.args[1:]
    ]
    axes, begins, _, *strides = numbers
    if axes is None or begins is None or len(axes) != 1 or None in (*axes, *begins):
        return None
    if strides and strides != [[1.0]]:
        return None
    axis, begin = int(axes[0] or 0) % len(shape), int(begins[0] or 0)
    begin += shape[axis] * (begin < 0)
    return (axis, begin) if 0 <= begin < shape[axis] else None


def _while(read: Sequence[Any], holds: Callable[[int, Any], bool]) -> int:
    """Return for how many turns, from the first on, a condition holds."""
    return next((t for t, one in enumerate(read) if not holds(t, one)), len(read))


def _count(constant: Any) -> int:
    return int(compat.constant_array(constant).size)
