"""Expansion of ONNX If, Loop and Scan; ``_onnx_control`` decides when.

Each expansion of a subgraph prefixes its names, so that names stay unique.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm_serenity.frontends._onnx_expansion import CountNotKnownError, Expansion
from tvm_serenity.frontends._onnx_fold import KnownValues
from tvm_serenity.frontends._onnx_names import outer_reads, rename
from tvm_serenity.frontends.model_file import MOST_FOLLOWED, MOST_WRITTEN_OUT

if TYPE_CHECKING:
    import onnx

_NAMES = """
    Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike
"""
_DRAWN = frozenset(_NAMES.split())
"""Operators with another result in each run."""


@dataclass
class _Body:
    """A subgraph to expand; ``varying``: values that may differ between iterations."""

    expansion: Expansion
    graph: "onnx.GraphProto"
    prefix: str
    lasting: dict[str, str] = field(default_factory=dict)
    """The new names of loop-invariant values."""

    def __post_init__(self) -> None:
        varying = {value.name for value in self.graph.input}
        self.fixed: list[bool] = []
        for node in self.graph.node:
            reads = {*node.input, *outer_reads(node)}
            self.fixed.append(node.op_type not in _DRAWN and not reads & varying)
            if not self.fixed[-1]:
                varying.update(node.output)
        for tensor in self.graph.initializer:
            self.lasting[tensor.name] = self.expansion.hold(tensor, f"{self.prefix}/{tensor.name}")
        if self.graph.sparse_initializer:
            raise CountNotKnownError("its subgraph has sparse constants")

    def turn(self, given: Mapping[str, str], turn: str = "") -> list[str]:
        """Write the nodes with inputs ``given``; return the names of the outputs."""
        first = not turn or turn == "0"
        names = {**self.lasting, **given}
        for node, fixed in zip(self.graph.node, self.fixed, strict=True):
            if fixed and not first:
                continue
            made = type(node)()
            made.CopyFrom(node)
            place = f"{self.prefix}/{turn}/" if turn and not fixed else f"{self.prefix}/"
            own = {n: self.expansion.fresh(place + n) for n in node.output if n}
            rename(made, {**names, **own})
            names.update(own)
            if fixed:
                self.lasting.update(own)
            self.expansion.write(made)
            self._bounded(own.values())
        self._state_types(names)
        return [names.get(value.name, value.name) for value in self.graph.output]

    def _bounded(self, made: Iterable[str]) -> None:
        """Count a node; refuse a network that becomes too long."""
        to = self.expansion
        to.steps += 1
        to.inside += any(name not in to.known.values for name in made)
        if to.inside > MOST_WRITTEN_OUT or to.steps > MOST_FOLLOWED:
            raise CountNotKnownError(
                f"expanded, it has more than {MOST_WRITTEN_OUT:,} operators, or "
                f"{MOST_FOLLOWED:,} including counters and conditions"
            )

    def _state_types(self, names: Mapping[str, str]) -> None:
        """Keep complete shapes that only the subgraph states."""
        for value in (*self.graph.value_info, *self.graph.output):
            name = names.get(value.name, value.name)
            if self.expansion.known.shape(name) is not None or name not in self.expansion.names:
                continue
            if KnownValues({name: value.type}).shape(name) is None:
                continue
            self.expansion.known.types[name] = value.type
            self.expansion.types.append(type(value)(name=name, type=value.type))


def _graph(node: "onnx.NodeProto", name: str) -> Any:
    found = next((a.g for a in node.attribute if a.name == name), None)
    if found is None:
        raise CountNotKnownError(f"it has no subgraph {name}")
    return found


def _branch(to: Expansion, node: "onnx.NodeProto") -> None:
    """Expand an If: the known branch, or both branches and a selection."""
    branches = [_graph(node, name) for name in ("then_branch", "else_branch")]
    value = to.value(node.input[0])
    if value is not None and value.size == 1:
        branches = branches[:1] if value.reshape(()).item() else branches[1:]
    if any(len(branch.output) != len(node.output) for branch in branches):
        raise CountNotKnownError("the number of results of a branch differs from the operator's")
    sides = ("then", "else") if len(branches) > 1 else ("taken",)
    made = [
        _Body(to, branch, f"{node.output[0]}:{side}").turn({})
        for branch, side in zip(branches, sides, strict=True)
    ]
    for results, output in zip(zip(*made, strict=True), node.output, strict=True):
        if len(results) == 1:
            to.emit("Identity", results, output)
        else:
            _check_alike(to, node.input[0], results)
            to.emit("Where", [node.input[0], *results], output)


def _check_alike(to: Expansion, condition: str, results: Sequence[str]) -> None:
    """Refuse a selection between results of different, or unknown, types or shapes."""
    shapes = [to.known.shape(name) for name in results]
    kinds = {to.known.types[n].tensor_type.elem_type for n in results if n in to.known.types}
    asked = to.known.shape(condition)
    if to.version < 9 or None in shapes or len(set(shapes)) > 1 or len(kinds) > 1:
        raise CountNotKnownError(
            "its condition is known only at run time, and its branches return different "
            "shapes or types"
        )
    if asked is None or len(asked) > len(shapes[0] or ()) or any(e != 1 for e in asked):
        raise CountNotKnownError("its condition is not a single boolean")


def _loop(to: Expansion, node: "onnx.NodeProto") -> None:
    """Expand a Loop with a known count; each iteration reads the previous results."""
    limit, condition, *carried = (*node.input, "", "")[: max(2, len(node.input))]
    most = to.single(limit, "its number of iterations") if limit else None
    goes_on = bool(to.single(condition, "its first condition")) if condition else True
    body = _Body(to, _graph(node, "body"), node.output[0])
    entries = [value.name for value in body.graph.input]
    rows: list[list[str]] = [[] for _ in node.output[len(carried) :]]
    if len(entries) != 2 + len(carried) or len(body.graph.output) != 1 + len(node.output):
        raise CountNotKnownError(
            "the number of inputs or outputs of its body differs from the operator's"
        )
    turn = 0
    while goes_on and (most is None or turn < most):
        held = (to.constant(np.int64(turn), f"turn{turn}"), to.constant(np.bool_(True), "goes_on"))
        found = body.turn(dict(zip(entries, (*held, *carried), strict=True)), str(turn))
        again, carried, made = found[0], found[1 : 1 + len(carried)], found[1 + len(carried) :]
        for row, name in zip(rows, made, strict=True):
            row.append(name)
        goes_on = bool(to.single(again, "the condition of its body"))
        turn += 1
        if turn > MOST_FOLLOWED:
            raise CountNotKnownError(f"the loop runs more than {MOST_FOLLOWED:,} times")
    for name, output in zip(carried, node.output, strict=False):
        if output:
            to.emit("Identity", [name], output)
    for row, output in zip(rows, node.output[len(carried) :], strict=True):
        if output:
            to.result(row, 0, output, f"its result {output!r}")


def _scan(to: Expansion, node: "onnx.NodeProto") -> None:
    """Expand a Scan: its body once per element of the scanned axes."""
    if to.version < 9:
        raise CountNotKnownError(
            "its form before opset 9 is not supported; export with opset 9 or later"
        )
    scan = _Scan.of(to, node)
    body = _Body(to, _graph(node, "body"), node.output[0])
    entries = [value.name for value in body.graph.input]
    carried = list(node.input[: scan.states])
    rows: list[list[str]] = [[] for _ in node.output[scan.states :]]
    if len(entries) != len(node.input) or len(body.graph.output) != len(node.output):
        raise CountNotKnownError(
            "the number of inputs or outputs of its body differs from the operator's"
        )
    for turn in range(scan.turns):
        parts = list(scan.parts(to, turn))
        found = body.turn(dict(zip(entries, (*carried, *parts), strict=True)), str(turn))
        carried, made = found[: scan.states], found[scan.states :]
        for row, name in zip(rows, made, strict=True):
            row.append(name)
    for name, output in zip(carried, node.output, strict=False):
        if output:
            to.emit("Identity", [name], output)
    for index, (row, output) in enumerate(zip(rows, node.output[scan.states :], strict=True)):
        if output:
            to.result(*scan.concatenated_parts(to, index, row), output, f"its result {output!r}")


@dataclass(frozen=True)
class _Scan:
    """The scanned inputs (names, axes, directions), and results (axes, directions)."""

    states: int
    inputs: tuple[tuple[str, int, bool], ...]
    outputs: tuple[tuple[int, bool], ...]
    turns: int

    @staticmethod
    def of(to: Expansion, node: "onnx.NodeProto") -> "_Scan":
        held = {a.name: list(a.ints) for a in node.attribute}
        count = next((int(a.i) for a in node.attribute if a.name == "num_scan_inputs"), 0)
        states = len(node.input) - count
        names, made = node.input[states:], len(node.output) - states
        if not 0 < count <= len(node.input) or made < 0:
            raise CountNotKnownError("num_scan_inputs is invalid")

        def of_each(name: str, number: int) -> list[int]:
            found = held.get(name) or [0] * number
            if len(found) != number:
                raise CountNotKnownError(f"{name} has {len(found)} values, expected {number}")
            return found

        shapes = [to.known.shape(name) for name in names]
        axes = of_each("scan_input_axes", count)
        if any(s is None or not -len(s) <= a < len(s) for s, a in zip(shapes, axes, strict=True)):
            raise CountNotKnownError("the shape of its scanned inputs is known only at run time")
        placed = [a % len(s or ()) for s, a in zip(shapes, axes, strict=True)]
        turns = {(s or ())[a] for s, a in zip(shapes, placed, strict=True)}
        if len(turns) > 1:
            raise CountNotKnownError("its scanned inputs have different extents")
        backwards = [bool(d) for d in of_each("scan_input_directions", count)]
        turned = [bool(d) for d in of_each("scan_output_directions", made)]
        inputs = tuple(zip(names, placed, backwards, strict=True))
        outputs = tuple(zip(of_each("scan_output_axes", made), turned, strict=True))
        return _Scan(states, inputs, outputs, turns.pop())

    def parts(self, to: Expansion, turn: int) -> Iterator[str]:
        """Write the element of each scanned input that an iteration reads; yield their names."""
        for name, axis, backwards in self.inputs:
            index = self.turns - 1 - turn if backwards else turn
            yield to.part(name, axis, index, to.fresh(f"{name}/{index}"))

    def concatenated_parts(
        self, to: Expansion, index: int, row: list[str]
    ) -> tuple[list[str], int]:
        """Return the parts of a result in order, and their axis."""
        axis, backwards = self.outputs[index]
        if axis < 0:
            shape = to.known.shape(row[0]) if row else None
            if shape is None:
                raise CountNotKnownError("the shape of its result is known only at run time")
            axis += len(shape) + 1
        return (row[::-1] if backwards else row), axis


EXPAND: Mapping[str, Callable[[Expansion, Any], None]] = {
    "If": _branch,
    "Loop": _loop,
    "Scan": _scan,
}
"""The expansion of each operator with subgraphs."""
