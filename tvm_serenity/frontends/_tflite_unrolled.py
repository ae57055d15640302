"""Expand loops in a ``.tflite`` file, and select known branches.

A WHILE whose condition depends only on integers and booleans that are stored, or counted by the
body, has a known number of iterations: its body is repeated that many times. An IF with such a
condition becomes its branch. With an unknown condition both branches, which must keep no state, are
computed and each result is selected (``SELECT_V2``). Each repetition has its own tensors; constants
are stored once; values that follow from counters (positions in a sequence) are stored as constants.
Operators with unknown control flow stay, and are refused later by name.

The new main graph is written in front of the file (``_tflite_prefix``), which does not change.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.frontends._flatbuffer import Table, empty_table
from tvm_serenity.frontends._tflite_known import KnownTensors, NotKnownError
from tvm_serenity.frontends._tflite_loop_shapes import Reshaped, is_reshaped, shape_of
from tvm_serenity.frontends._tflite_schema import (
    ModelField,
    OperatorField,
    SubgraphField,
    TensorField,
)
from tvm_serenity.frontends._tflite_sequences import Cut, Joined, Sequences
from tvm_serenity.frontends.model_file import MOST_FOLLOWED, MOST_WRITTEN_OUT
from tvm_serenity.operators import operator
from tvm_serenity.operators.extents import Extents
from tvm_serenity.operators.scene import Array, Shape

_DEEPEST = 8
_READS = 256 * MOST_FOLLOWED
"""The read budget for the expansion, larger than for a file without loops."""
INTERMEDIATES = 8
_LOOP, _BRANCH = "WHILE", "IF"
_STATES = {"VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"}
KindsOf = Callable[[Table, Sequence[Table]], list[str]]


@dataclass(frozen=True)
class Subgraph:
    """A subgraph of the file, read once."""

    tensors: tuple[Table, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Table, ...]
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class PlacedOperator:
    """An operator with its tensors in the new main graph.

    ``table`` is the operator in the file; None for a selection (condition, then, else), which the
    file does not contain.
    """

    table: Table | None
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    between: tuple[int, ...]


@dataclass
class Unrolling:
    """The main graph under construction; a tensor is one of the file, or a known value."""

    model: Table
    kinds_of: KindsOf
    operators: list[PlacedOperator] = field(default_factory=list)
    read: dict[int, Subgraph] = field(default_factory=dict)
    constants: dict[tuple[int, int], int] = field(default_factory=dict)
    stored: dict[tuple[str, tuple[int, ...], bytes], int] = field(default_factory=dict)
    empty: set[int] = field(default_factory=set)
    """Tensors without elements, which no operator computes."""
    inside: set[int] = field(default_factory=set)
    """Results of operators in loops and branches; unread results are dropped."""
    steps: int = 0

    def __post_init__(self) -> None:
        self.model.source.left += _READS
        self.subgraphs = self.model.tables(ModelField.SUBGRAPHS)
        self.buffers = self.model.tables(ModelField.BUFFERS)
        self.known = KnownTensors(self.model, self.buffers)
        self.tensors, self.made = self.known.tensors, self.known.made
        self.sequences = Sequences(lambda t: self.known.form(t)[1], self.known.scales)

    def main(self) -> tuple[int, ...]:
        """Expand the main graph; return its outputs. Its tensors keep their numbers."""
        graph = self.subgraph(0)
        self.tensors += graph.tensors
        self.made.update(graph.inputs)
        names = {i: i for i in range(len(graph.tensors))}
        outputs = self._follow(graph, names, (0,), self._place_main)
        self._leave_out_unread(outputs)
        return outputs

    def _leave_out_unread(self, outputs: tuple[int, ...]) -> None:
        read, kept = set(outputs), []
        for op in reversed(self.operators):
            if self.inside.issuperset(op.outputs) and read.isdisjoint(op.outputs):
                continue
            kept.append(op)
            read.update(op.inputs)
        self.operators = kept[::-1]

    def subgraph(self, index: int) -> Subgraph:
        """Return a subgraph with checked references to tensors."""
        if not 0 <= index < len(self.subgraphs):
            raise InputError(f"subgraph {index} does not exist, the file has {len(self.subgraphs)}")
        if index not in self.read:
            table = self.subgraphs[index]
            tensors, ops = table.tables(SubgraphField.TENSORS), table.tables(3)
            entry, made = table.ints(SubgraphField.INPUTS), table.ints(SubgraphField.OUTPUTS)
            named = [t for op in ops for f in (1, 2, INTERMEDIATES) for t in op.ints(f)]
            if not all(-1 <= t < len(tensors) for t in named) or not all(
                0 <= t < len(tensors) for t in (*entry, *made)
            ):
                raise InputError(f"subgraph {index} refers to a tensor that does not exist")
            kinds = tuple(self.kinds_of(self.model, ops))
            self.read[index] = Subgraph(tensors, entry, made, ops, kinds)
        return self.read[index]

    def _follow(
        self,
        graph: Subgraph,
        names: dict[int, int],
        within: tuple[int, ...],
        place: Callable[[str, PlacedOperator, tuple[Table, ...]], tuple[int, ...]],
    ) -> tuple[int, ...]:
        """Add the operators of a subgraph to the new graph; return the numbers of its outputs."""
        for kind, table in zip(graph.kinds, graph.operators, strict=True):
            self._bounded()
            given = tuple(self._named(within[-1], graph, names, t) for t in table.ints(1))
            made, between = table.ints(2), table.ints(INTERMEDIATES)
            if kind in (_LOOP, _BRANCH):
                old = tuple(graph.tensors[t] for t in made if t >= 0)
                run = self._repeat if kind == _LOOP else partial(self._branch, old)
                results = run(table.table(OperatorField.BUILTIN_OPTIONS), given, within)
                if len(results) != len(made):
                    raise InputError(
                        f"{kind} has {len(made)} results, but its subgraph returns {len(results)}"
                    )
            else:
                mid = tuple(self._named(within[-1], graph, names, t) for t in between)
                old = tuple(graph.tensors[t] for t in made if t >= 0)
                results = place(kind, PlacedOperator(table, given, made, mid), old)
            names.update(zip(made, results, strict=True))
        return tuple(self._named(within[-1], graph, names, t) for t in graph.outputs)

    def _bounded(self) -> None:
        """Count an operator or a run of a subgraph; refuse a loop that is too long."""
        self.steps += 1
        if self.steps > MOST_FOLLOWED or len(self.operators) > MOST_WRITTEN_OUT:
            raise UnsupportedError(
                f"operator {_LOOP}: expanded, it has more than {MOST_WRITTEN_OUT:,} "
                f"operators, or {MOST_FOLLOWED:,} including counters and conditions; "
                "convert recurrent layers to operators of their own "
                "(UNIDIRECTIONAL_SEQUENCE_LSTM), run one step at a time with the states "
                "as variables, or shorten the sequence"
            )

    def _named(self, index: int, graph: Subgraph, names: dict[int, int], tensor: int) -> int:
        """Return the new number of a tensor; constants are shared by all repetitions."""
        if tensor < 0 or tensor in names:
            return names.get(tensor, tensor)
        key = index, tensor
        if key not in self.constants:
            if graph.tensors[tensor].u8(TensorField.IS_VARIABLE):
                raise NotKnownError
            self.constants[key] = self._new(graph.tensors[tensor])
        return self.constants[key]

    def _new(self, tensor: Table | Array | Reshaped) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def _place_main(self, kind: str, op: PlacedOperator, old: tuple[Table, ...]) -> tuple[int, ...]:
        """Keep an operator of the main graph; record its result if it is known."""
        self.operators.append(op)
        self.made.update(op.outputs)
        found = self._computed(kind, op, old)
        if found is not None:
            self.known.values[op.outputs[0]] = found
        return op.outputs

    def _place(self, kind: str, op: PlacedOperator, old: tuple[Table, ...]) -> tuple[int, ...]:
        """Add an operator of another subgraph, or store its result if that is known."""
        found = self._computed(kind, op, old)
        if found is not None:
            return (self._constant(found),)
        known = operator(kind)
        variable = any(t.u8(TensorField.IS_VARIABLE) for t in old)
        if variable or known.calls or known.state.keeps or known.state.holds or kind in _STATES:
            raise UnsupportedError(
                f"operator {kind}: it keeps state inside of a subgraph that {_LOOP} or "
                f"{_BRANCH} runs; keep the state in the main graph"
            )
        if len(old) != len(op.outputs):
            raise InputError(f"{kind} has a result that is not a tensor")
        op = self._without_empty(kind, op)
        joined = self._sequence(kind, op, old)
        if isinstance(joined, Joined):
            if len(joined.parts) == 1:
                return (joined.parts[0][0],)
            if kind == "CONCATENATION":
                op = replace(op, inputs=tuple(part for part, _ in joined.parts))
        elif joined is not None:
            op = replace(
                op, inputs=(joined.tensor, *map(self._constant, (joined.begin, joined.size)))
            )
        shape = self._shape(kind, op, old)
        made = tuple(self._new(t if shape is None else Reshaped(t, shape)) for t in old)
        self.made.update(made)
        self.inside.update(made)
        if isinstance(joined, Joined):
            self.sequences.found[made[0]] = joined
        if shape is not None and 0 in shape:
            self.empty.update(made)
            return made
        self.operators.append(PlacedOperator(op.table, op.inputs, made, op.between))
        return made

    def _sequence(
        self, kind: str, op: PlacedOperator, old: tuple[Table, ...]
    ) -> Joined | Cut | None:
        """Return the operands that an operator concatenates, or a slice of one; else None."""
        if op.table is None or not all(t >= 0 for t in op.inputs):
            return None
        if kind == "CONCATENATION":
            options = op.table.table(OperatorField.BUILTIN_OPTIONS) or empty_table()
            return self.sequences.join(op.inputs, self.known.scales(old[0]), options)
        if kind != "SLICE" or op.inputs[0] not in self.sequences.found:
            return None
        try:
            return self.sequences.cut(op.inputs[0], *(self.known.value(t) for t in op.inputs[1:]))
        except NotKnownError:
            return None

    def _without_empty(self, kind: str, op: PlacedOperator) -> PlacedOperator:
        """Return the operator without empty operands, which a concatenation ignores."""
        if not self.empty.intersection(op.inputs):
            return op
        left = tuple(t for t in op.inputs if t not in self.empty)
        if kind != "CONCATENATION" or not left:
            raise UnsupportedError(
                f"operator {kind}: it reads an empty tensor in a loop, which is not supported"
            )
        return replace(op, inputs=left)

    def _shape(self, kind: str, op: PlacedOperator, old: tuple[Table, ...]) -> Shape | None:
        """Return the shape of the only result if it differs from the stored one."""
        if len(old) != 1 or op.table is None:
            return None
        follows = any(t >= 0 and is_reshaped(self.tensors[t]) for t in op.inputs)
        shapes = [self.known.form(t)[1] if t >= 0 else () for t in op.inputs]
        values = [self.known.integers(t) for t in op.inputs]
        options = op.table.table(OperatorField.BUILTIN_OPTIONS) or empty_table()
        seen = Extents(shapes, values, options, old[0].ints(TensorField.SHAPE))
        return shape_of(kind, seen, old[0], follows)

    def _computed(self, kind: str, op: PlacedOperator, old: tuple[Table, ...]) -> Array | None:
        """Return an operator's result on known integers; None if it is unknown."""
        if len(old) != 1 or len(op.outputs) != 1 or op.outputs[0] < 0:
            return None
        options = None if op.table is None else op.table.table(OperatorField.BUILTIN_OPTIONS)
        return self.known.result(kind, options, op.inputs, old[0])

    def _constant(self, value: Array) -> int:
        key = value.dtype.name, value.shape, value.tobytes()
        if key not in self.stored:
            self.stored[key] = self._new(value)
            self.known.values[self.stored[key]] = value
        return self.stored[key]

    def _branch(
        self,
        old: tuple[Table, ...],
        options: Table | None,
        given: tuple[int, ...],
        within: tuple[int, ...],
    ) -> tuple[int, ...]:
        """Return the results of the known branch, or selected results."""
        options = options or empty_table()
        branches = options.i32(0), options.i32(1)
        try:
            taken = branches[0] if self._holds(given[:1]) else branches[1]
        except NotKnownError:
            first, second = (self._call(branch, given[1:], within) for branch in branches)
            if not len(first) == len(second) == len(old):
                raise InputError(
                    "the branches of an IF have different numbers of results"
                ) from None
            pairs = zip(first, second, old, strict=True)
            return tuple(self._selected(given[0], a, b, made) for a, b, made in pairs)
        return self._call(taken, given[1:], within)

    def _selected(self, condition: int, first: int, second: int, old: Table) -> int:
        """Return a tensor like ``old`` that selects from two others of its type and shape."""
        if first == second:
            return first
        dtype, shape = self.known.form(old)
        held, one = self.known.form(condition)
        alike = all(self.known.form(t) == (dtype, shape) for t in (first, second))
        if held != "bool" or math.prod(one) != 1 or len(one) > len(shape) or not alike:
            raise NotKnownError
        self._bounded()
        made = self._new(old)
        self.made.add(made)
        self.inside.add(made)
        self.operators.append(PlacedOperator(None, (condition, first, second), (made,), ()))
        return made

    def _repeat(
        self, options: Table | None, given: tuple[int, ...], within: tuple[int, ...]
    ) -> tuple[int, ...]:
        """Return the results of a loop."""
        options = options or empty_table()
        first, second = options.i32(0), options.i32(1)
        while True:
            before = len(self.operators)
            condition = self._call(first, given, within)
            holds = self._holds(condition)
            del self.operators[before:]
            if not holds:
                return given
            given = self._call(second, given, within)

    def _holds(self, condition: tuple[int, ...]) -> bool:
        if len(condition) != 1:
            raise InputError("the condition of an IF or WHILE is not a single tensor")
        value = self.known.value(condition[0])
        if value.size != 1 or value.dtype != np.bool_:
            raise NotKnownError
        return bool(value.reshape(()))

    def _call(self, index: int, given: tuple[int, ...], within: tuple[int, ...]) -> tuple[int, ...]:
        if index in within or len(within) > _DEEPEST:
            raise UnsupportedError(
                f"operator {_LOOP} or {_BRANCH}: subgraph {index} calls itself, or "
                f"subgraphs are nested more than {_DEEPEST} deep; convert the network "
                "without recursion"
            )
        graph = self.subgraph(index)
        if len(graph.inputs) != len(given):
            raise InputError(
                f"subgraph {index} has {len(graph.inputs)} inputs, but is called with {len(given)}"
            )
        self._bounded()
        names = dict(zip(graph.inputs, given, strict=True))
        return self._follow(graph, names, (*within, index), self._place)
