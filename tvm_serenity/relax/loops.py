"""Loops that a reader or an importer wrote out, as one kernel each.

``relax.loop_search`` finds them. The bindings of one turn become a function of their own, which is
lowered, ordered and planned like a network; its kernels become the body of one kernel
(``kernels.loop``). That kernel reads rows of sequences where they lie, and writes the rows that a
concatenation or a stack of the results of all turns would have joined. A loop whose body has
anything but kernels and reshapes stays written out.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.kernels.loop import Held, Loop, LoopResult, LoopRow, LoopState, loop_kernel
from tvm_serenity.kernels.nodes import same
from tvm_serenity.relax.bindings import bindings, dataflow_main, emitted, renewed, rewritten
from tvm_serenity.relax.loop_search import (
    Before,
    EvenRows,
    FoundLoop,
    Inside,
    Operand,
    Same,
    is_view,
    leaves,
    loops,
)
from tvm_serenity.relax.lower import lowered
from tvm_serenity.relax.schedule import order_module, ordering

NAME = "loop"
"""The name of the kernels."""
Form = Callable[[Any], Any]
_JOINS = {"relax.concat", "relax.stack"}
_BYTE = 8


def kept_loops(mod: tvm.IRModule, target: tvm.target.Target, form: Form) -> Any:
    """Return ``mod``, fresh, with a kernel for each loop that was written out.

    ``form``: returns the form of a lowered kernel in the body of a loop. A module without such
    loops is returned unchanged.
    """
    function = dataflow_main(mod)
    if function is None:
        return mod
    uses = _Uses(function)
    found = [_kept(mod, one, uses, target, form) for one in loops(mod, function)]
    kept = [one for one in found if one is not None]
    if not kept:
        return mod
    return rewritten(mod, function, lambda builder, new: _Writer(builder, new, kept))


@dataclass(frozen=True)
class _Joined:
    """A concatenation or stack: ``count`` operands from ``first`` on are the rows of a loop."""

    place: int
    backwards: bool
    first: int


@dataclass(frozen=True)
class _Kept:
    """A loop, its kernel and what the rest of the function reads of it.

    ``parameters``: the tensors that the kernel reads. ``outputs``: place of a binding, whether all
    turns, and whether backwards, of each result.
    """

    found: FoundLoop
    kernel: Any
    parameters: tuple[Any, ...]
    outputs: tuple[tuple[int, bool, bool], ...]
    joined: Mapping[Any, _Joined]


class _Uses:
    """Who reads the variables of a function."""

    def __init__(self, function: relax.Function) -> None:
        self.values = dict(bindings(function))
        self.readers: dict[Any, list[Any]] = defaultdict(list)
        for var, value in self.values.items():
            for leaf in leaves(value):
                self.readers[leaf].append(var)
        self.returned = set(leaves(function.body.body))

    def source(self, var: Any) -> Any:
        """Return the variable whose elements ``var`` has, in the same order."""
        value = self.values.get(var)
        while value is not None and self._is_alias(value):
            var = leaves(value)[0]
            value = self.values.get(var) if isinstance(var, relax.Var) else None
        return var

    def _is_alias(self, value: relax.Expr) -> bool:
        if not compat.is_call(value):
            return False
        name = compat.op_name(value)
        return is_view(name) or (name in _JOINS and len(leaves(value)) == 1)

    def joins(self, found: FoundLoop) -> dict[Any, _Joined]:
        """Return the concatenations and stacks that join a result of all turns."""
        inside = {var: (t, j) for t, turn in enumerate(found.turns) for j, var in enumerate(turn)}
        joined: dict[Any, _Joined] = {}
        for var, value in self.values.items():
            if var in inside or not compat.is_call(value) or compat.op_name(value) not in _JOINS:
                continue
            given = [inside.get(self.source(leaf), (-1, -1)) for leaf in leaves(value)]
            one = _run_in(given, len(found.turns))
            if one is not None and _in_rows(value):
                joined[var] = one
        return joined

    def outputs(
        self, found: FoundLoop, joined: Mapping[Any, _Joined]
    ) -> tuple[tuple[int, bool, bool], ...]:
        """Return the results that the rest of the function reads."""
        inside = {var for turn in found.turns for var in turn}
        made = dict.fromkeys((one.place, True, one.backwards) for one in joined.values())

        def read(var: Any) -> bool:
            others = [r for r in self.readers[var] if r not in inside and r not in joined]
            alias = [r for r in others if self._is_alias(self.values[r])]
            return var in self.returned or len(alias) < len(others) or any(map(read, alias))

        for t, turn in enumerate(found.turns):
            last = t == len(found.turns) - 1
            for j, var in enumerate(turn):
                if read(var):
                    made[j, not last, False] = None
        return tuple(made)


def _run_in(given: Sequence[tuple[int, int]], turns: int) -> _Joined | None:
    """Return which of the operands of a join are the rows of all turns."""
    for first in range(len(given) - turns + 1):
        cut = given[first : first + turns]
        place = cut[0][1]
        for backwards in (False, True):
            wanted = [(t, place) for t in range(turns)]
            if place >= 0 and cut == (wanted[::-1] if backwards else wanted):
                return _Joined(place, backwards, first)
    return None


def _in_rows(join: relax.Call) -> bool:
    """Return whether a join stores its operands one behind the other."""
    shapes = [compat.constant_shape(leaf.ty) for leaf in leaves(join)]
    axis = join.attrs.axis
    stacked = compat.op_name(join) == "relax.stack"
    if axis is None or None in shapes:
        return False
    rank = len(shapes[0] or ()) + stacked
    return all(prod((s or ())[: int(axis) % rank]) == 1 for s in shapes)


def _kept(
    mod: tvm.IRModule, found: FoundLoop, uses: _Uses, target: tvm.target.Target, form: Form
) -> _Kept | None:
    """Return a loop with its kernel; None if its body has more than kernels and reshapes."""
    joined = uses.joins(found)
    outputs = uses.outputs(found, joined)
    step = _Step(mod, found, [place for place, _, _ in outputs])
    if not step.whole_bytes:
        return None
    body = order_module(lowered(step.module(), target), ordering())
    read = _Body(body, step, form)
    if read.results is None:
        return None
    states = tuple(
        LoopState(
            read.given[p], read.parameter(one.start), read.results[step.places.index(one.place)]
        )
        for p, one in enumerate(step.operands)
        if isinstance(one, Before)
    )
    made = tuple(
        LoopResult(read.results[step.places.index(place)], rows, backwards)
        for place, rows, backwards in outputs
    )
    computed = {tensor for _, given in read.calls for tensor in given} - set(read.rows)
    computed -= {state.tensor for state in states}
    if not {s.after for s in states} | {r.tensor for r in made} <= computed:
        return None
    loop = Loop(
        len(found.turns),
        tuple((prod(_shape(p)), compat.dtype_name(p.ty)) for p in read.parameters),
        tuple(read.tensors),
        read.rows,
        states,
        tuple(read.calls),
        made,
    )
    return _Kept(found, loop_kernel(loop), tuple(read.parameters), outputs, joined)


class _Step:
    """One turn of a loop as a function of its own.

    ``operands``: what its parameters are. ``places``: the bindings that are its results.
    """

    def __init__(self, mod: tvm.IRModule, found: FoundLoop, wanted: Sequence[int]) -> None:
        self.mod, self.found = mod, found
        every = [(one, leaf) for one, leaf in self._read() if not _is_inside(one)]
        self.operands: list[Operand] = []
        self.types: list[Any] = []
        for one, leaf in every:
            if self.index(one, leaf.ty) is None:
                self.operands.append(one)
                self.types.append(leaf.ty)
        after = [one.place for one in self.operands if isinstance(one, Before)]
        self.places = list(dict.fromkeys([*after, *wanted]))
        made = [found.turns[0][place].ty for place in self.places]
        self.whole_bytes = all(
            compat.is_tensor(ty) and compat.dtype_bits(compat.dtype_name(ty)) >= _BYTE
            for ty in [*self.types, *made]
        )

    def _read(self) -> Iterator[tuple[Operand, Any]]:
        for value, operands in zip(self.found.values, self.found.operands, strict=True):
            yield from zip(operands, leaves(value), strict=True)

    def index(self, operand: Operand, ty: Any) -> int | None:
        """Return which parameter an operand is; None for a new one."""
        for i, (one, held) in enumerate(zip(self.operands, self.types, strict=True)):
            if _alike(one, operand) and same(held, ty):
                return i
        return None

    def module(self) -> tvm.IRModule:
        """Return the function, as ``main`` of a module with the kernels that it calls."""
        others = {n: f for n, f in self.mod.functions.items() if n.name_hint != "main"}
        builder = relax.BlockBuilder(tvm.IRModule(others))
        params = [relax.Var(f"given_{i}", ty) for i, ty in enumerate(self.types)]
        made: list[Any] = []
        with builder.function("main", params):
            with builder.dataflow():
                for value, operands in zip(self.found.values, self.found.operands, strict=True):
                    left = iter(operands)

                    def given(expr: relax.Expr, left: Iterator[Operand] = left) -> Any:
                        if not isinstance(expr, relax.Var) and not compat.is_constant(expr):
                            return renewed(expr, lambda part: given(part, left))
                        one = next(left)
                        if isinstance(one, Inside):
                            return made[one.place]
                        if isinstance(one, Same) and compat.is_constant(one.value):
                            return one.value
                        return params[self.index(one, expr.ty) or 0]

                    made.append(builder.emit(given(value)))
                result = builder.emit_output(relax.Tuple([made[p] for p in self.places]))
            builder.emit_func_output(result)
        return relax.transform.DeadCodeElimination(["main"])(builder.finalize())


def _is_inside(operand: Operand) -> bool:
    constant = isinstance(operand, Same) and compat.is_constant(operand.value)
    return constant or isinstance(operand, Inside)


def _alike(one: Operand, other: Operand) -> bool:
    if isinstance(one, Same) and isinstance(other, Same):
        return bool(one.value.same_as(other.value))
    if isinstance(one, Before) and isinstance(other, Before):
        return one.place == other.place and bool(one.start.same_as(other.start))
    if isinstance(one, EvenRows) and isinstance(other, EvenRows):
        numbers = [(r.first, r.step, r.count) for r in (one, other)]
        return numbers[0] == numbers[1] and bool(one.source.same_as(other.source))
    return False


class _Body:
    """The lowered function of a step as calls of kernels on numbered tensors.

    ``given``: the tensors that are its parameters. ``results``: those it returns; None where it has
    more than kernels and reshapes.
    """

    def __init__(self, mod: tvm.IRModule, step: _Step, form: Form) -> None:
        self.mod, self.form = mod, form
        self.tensors: list[Held] = []
        self.rows: dict[int, LoopRow] = {}
        self.calls: list[tuple[Any, tuple[int, ...]]] = []
        self.parameters: list[Any] = []
        self.held: dict[Any, Any] = {}
        self.given: list[int] = []
        main = mod["main"]
        for var, operand in zip(main.params, step.operands, strict=True):
            tensor = self.tensor(var.ty)
            self.held[var] = tensor
            self.given.append(tensor)
            if isinstance(operand, EvenRows):
                source = self.parameter(operand.source)
                self.rows[tensor] = LoopRow(source, operand.first, operand.step)
            elif isinstance(operand, Same):
                self.rows[tensor] = LoopRow(self.parameter(operand.value))
        done = all(self.bound(var, value) for var, value in bindings(main))
        found = self.tensors_of(main.body.body) if done else None
        self.results = found if isinstance(found, list) else None

    def tensor(self, ty: Any) -> int:
        """Return a new tensor."""
        self.tensors.append((compat.static_shape(ty, NAME), compat.dtype_name(ty)))
        return len(self.tensors) - 1

    def parameter(self, value: Any) -> int:
        """Return which parameter of the kernel holds a tensor from outside of the loop."""
        for i, one in enumerate(self.parameters):
            if one.same_as(value):
                return i
        self.parameters.append(value)
        return len(self.parameters) - 1

    def tensors_of(self, value: relax.Expr) -> Any:
        """Return the number of a tensor, a list for a tuple; None for other expressions."""
        if value in self.held:
            return self.held[value]
        if compat.is_constant(value):
            self.held[value] = self.tensor(value.ty)
            self.rows[self.held[value]] = LoopRow(self.parameter(value))
            return self.held[value]
        if isinstance(value, relax.Tuple):
            return [self.tensors_of(part) for part in value.fields]
        if isinstance(value, relax.TupleGetItem):
            return self.tensors_of(value.tuple_value)[value.index]
        if compat.is_call(value) and compat.op_name(value) == "relax.reshape":
            return self.tensors_of(value.args[0])
        return None

    def bound(self, var: relax.Var, value: relax.Expr) -> bool:
        """Read a binding; return whether it is a kernel or a reshape."""
        kernel = compat.called_kernel(value) if compat.is_call(value) else None
        if kernel is None:
            self.held[var] = self.tensors_of(value)
            return self.held[var] is not None
        if compat.overwritten(value) is not None or not compat.has_blocks(self.mod[kernel]):
            return False
        given = [self.tensors_of(argument) for argument in compat.kernel_arguments(value)]
        made = [self.tensor(ty) for ty in compat.result_types(value)]
        if not all(isinstance(tensor, int) for tensor in given):
            return False
        self.held[var] = made if compat.is_tuple(value.ty) else made[0]
        self.calls.append((self.form(self.mod[kernel]), (*given, *made)))
        return True


@dataclass
class _Writer:
    """A writer of kernels in place of loops."""

    builder: relax.BlockBuilder
    new: dict[Any, Any]
    kept: Sequence[_Kept]
    rows: dict[tuple[int, int, bool], Any] = field(default_factory=dict)
    """The flat results of all turns, by loop, place and direction."""

    def __post_init__(self) -> None:
        self.inside = {
            var: (i, t, j)
            for i, one in enumerate(self.kept)
            for t, turn in enumerate(one.found.turns)
            for j, var in enumerate(turn)
        }
        self.joined = {var: i for i, one in enumerate(self.kept) for var in one.joined}

    def bind(self, var: relax.Var, value: relax.Expr) -> None:
        """Write one binding."""
        if var in self.inside:
            i, t, j = self.inside[var]
            turns = self.kept[i].found.turns
            if (t, j) == (len(turns) - 1, len(turns[0]) - 1):
                self.loop(i, var.name)
        elif var in self.joined:
            self.new[var] = self.join(self.joined[var], var, value)
        elif all(self.is_written(leaf) for leaf in leaves(value)):
            self.new[var] = emitted(self.builder, self.given(value), var.name)

    def is_written(self, leaf: Any) -> bool:
        """Return whether a tensor still exists: rows that are joined have no variables."""
        if not isinstance(leaf, relax.Var) or leaf in self.new:
            return True
        i, _, j = self.inside.get(leaf, (-1, 0, 0))
        return (i, j, False) in self.rows

    def given(self, expr: relax.Expr) -> Any:
        """Return an expression with its variables replaced."""
        if not isinstance(expr, relax.Var):
            return renewed(expr, self.given)
        if expr not in self.new:
            i, t, j = self.inside[expr]
            whole, count = self.rows[i, j, False], prod(_shape(expr))
            part = relax.op.strided_slice(whole, [0], [t * count], [(t + 1) * count])
            self.new[expr] = self.shaped(self.builder.emit(part), _shape(expr))
        return self.new[expr]

    def loop(self, i: int, name: str) -> None:
        """Write the call of a loop's kernel."""
        one = self.kept[i]
        arguments = [self.flat(parameter) for parameter in one.parameters]
        call = compat.call_kernel(self.builder, one.kernel, NAME, arguments, len(one.outputs))
        made = self.builder.emit(call, f"{name}_{NAME}")
        for k, (place, rows, backwards) in enumerate(one.outputs):
            several = len(one.outputs) > 1
            result = self.builder.emit(relax.TupleGetItem(made, k)) if several else made
            if rows:
                self.rows[i, place, backwards] = result
            else:
                last = one.found.turns[-1][place]
                self.new[last] = self.shaped(result, _shape(last))

    def join(self, i: int, var: relax.Var, value: relax.Call) -> Any:
        """Return a concatenation or stack with the rows of a loop as one operand."""
        one = self.kept[i].joined[var]
        turns = len(self.kept[i].found.turns)
        rows = self.rows[i, one.place, one.backwards]
        parts = leaves(value)
        if len(parts) == turns:
            return self.shaped(rows, _shape(var))
        row = _shape(parts[one.first])
        axis = int(value.attrs.axis)
        stacked = compat.op_name(value) == "relax.stack"
        axis %= len(row) + stacked
        one_row = (*row[:axis], 1, *row[axis:]) if stacked else row
        whole = (*one_row[:axis], one_row[axis] * turns, *one_row[axis + 1 :])

        def operand(part: relax.Expr) -> Any:
            found = self.given(part)
            if not stacked:
                return found
            return self.shaped(found, (*row[:axis], 1, *row[axis:]))

        before = [operand(part) for part in parts[: one.first]]
        after = [operand(part) for part in parts[one.first + turns :]]
        joined = relax.op.concat([*before, self.shaped(rows, whole), *after], axis)
        return self.builder.emit(joined, var.name)

    def flat(self, value: Any) -> Any:
        """Return a tensor with one axis."""
        if compat.is_constant(value):
            return compat.constant(compat.constant_array(value).reshape(-1))
        return self.shaped(self.given(value), (prod(_shape(value)),))

    def shaped(self, value: Any, shape: tuple[int, ...]) -> Any:
        """Return a tensor in another shape."""
        if _shape(value) == shape:
            return value
        return self.builder.emit(relax.op.reshape(value, list(shape)))


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(compat.static_shape(value.ty, NAME))
