"""Dilated convolutions of ``.tflite`` files that a converter wrote as convolutions of phases.

SPACE_TO_BATCH_ND stores each ``b``-th row as an image of a batch (a phase), a convolution reads the
phases, and BATCH_TO_SPACE_ND interleaves its results. A plan by rows reads the three as one
convolution, as ``relax/dilations.py`` makes of them for kernels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.graph import Graph, Op
from tvm_serenity.operators import Seen, operator
from tvm_serenity.operators.needs import Need, row_stride

DIVIDE, JOIN = "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"
_BLOCKS, _EDGES = 1, 2
"""The operands of both: phases along each axis, and what is added or cut before and after it."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Dilated:
    """A convolution of phases: operator ``convolution`` of the file reads ``source`` divided.

    ``blocks``, ``before``, ``cut``: per axis of the source, its phases, its border before the first
    element, and the elements that are cut off before the first result. ``axes``: the axis of the
    convolution's image for each axis of the source. ``phases`` and ``made``: the shapes that the
    convolution reads and makes.
    """

    convolution: int
    source: int
    blocks: tuple[int, ...]
    before: tuple[int, ...]
    cut: tuple[int, ...]
    axes: tuple[int, ...]
    phases: Shape
    made: Shape

    def needs(self, seen: Seen, axis: int, height: int, rows: int) -> tuple[Need]:
        """Return the source's rows that ``height`` rows of the result need.

        ``seen``: the operator as of the file. ``axis``: the axis of the source's ``rows`` rows.
        """
        image, block = self.axes[axis], self.blocks[axis]
        inner = replace(
            seen,
            axes=[image],
            axis=image,
            made=self.made,
            height=self.made[image],
            sources=[self.phases[image]],
        )
        needs = operator(seen.kind).rows.needs
        if needs is None or row_stride(inner) != 1:
            raise UnsupportedError(f"{seen.kind} of phases is not computed row by row")
        (found,) = needs(inner)
        assert found is not None
        result = []
        for y in range(height):
            row, phase = divmod(y + self.cut[axis], block)
            first, end = found[row]
            shift = phase - self.before[axis]
            inside = [i * block + shift for i in range(first, end) if 0 <= i * block + shift < rows]
            result.append((inside[0], inside[-1] + 1) if inside else (0, 0))
        return (tuple(result),)


def dilated(
    graph: Graph, constant: Callable[[int], Sequence[int]]
) -> tuple[Graph, list[int], dict[int, Dilated]]:
    """Return ``graph`` with dilated convolutions in place of convolutions of phases.

    Also returns the operator of the file that each operator of the graph has its options from, and
    the dilated convolutions by their numbers. ``constant``: the integers of a constant tensor.
    """
    found = {}
    for index, op in enumerate(graph.ops):
        one = _found(graph, op, constant) if op.kind == JOIN else None
        if one is not None:
            found[index] = one
    known: dict[int, Dilated] = {}
    ops, numbers = list[Op](), list[int]()
    left_out = {i for one in found.values() for i in _between(graph, one)}
    for index, op in enumerate(graph.ops):
        if index in left_out:
            continue
        if index in found:
            one = found[index]
            inner = graph.ops[one.convolution]
            known[len(ops)], index = one, one.convolution
            op = replace(inner, inputs=(one.source, *inner.inputs[1:]), outputs=op.outputs)
        ops.append(op)
        numbers.append(index)
    return (graph.replace(ops=tuple(ops)) if known else graph), numbers, known


def _between(graph: Graph, one: Dilated) -> list[int]:
    """Return the operators from the division to the convolution and on to the join."""
    before, tensor = [one.convolution], graph.ops[one.convolution].inputs[0]
    while tensor != one.source:
        before.append(graph.producer[tensor])
        tensor = graph.ops[before[-1]].inputs[0]
    (made,) = graph.ops[one.convolution].outputs
    while graph.ops[reader := graph.consumers[made][0]].kind != JOIN:
        before.append(reader)
        (made,) = graph.ops[reader].outputs
    return before


def _found(graph: Graph, join: Op, constant: Callable[[int], Sequence[int]]) -> Dilated | None:
    """Return the dilated convolution whose phases an operator joins, None for others."""
    made = _viewed(graph, join.inputs[0])
    number = graph.producer[made]
    if number < 0 or not _alone(graph, made):
        return None
    convolution = graph.ops[number]
    if operator(convolution.kind).layer.weights is None:
        return None
    phases = convolution.inputs[0]
    divided = _viewed(graph, phases)
    division = graph.ops[graph.producer[divided]] if graph.producer[divided] >= 0 else None
    if division is None or division.kind != DIVIDE or not _alone(graph, divided):
        return None
    blocks = tuple(constant(division.inputs[_BLOCKS]))
    source = division.inputs[0]
    shapes = [graph.tensors[t].shape or () for t in (source, divided, phases, made)]
    axes = _axes(shapes[1], shapes[2])
    same = blocks == tuple(constant(join.inputs[_BLOCKS]))
    if not same or not blocks or axes is None or shapes[0][0] != 1:
        return None
    rest = (1,) * (len(shapes[0]) - 1 - len(blocks))
    none = (0,) * len(rest)
    borders, cuts = constant(division.inputs[_EDGES]), constant(join.inputs[_EDGES])
    return Dilated(
        number,
        source,
        (1, *blocks, *rest),
        (0, *borders[::2], *none),
        (0, *cuts[::2], *none),
        axes,
        shapes[2],
        shapes[3],
    )


def _viewed(graph: Graph, tensor: int) -> int:
    """Return what a tensor is a view of, through views that nothing else reads."""
    while (maker := graph.producer[tensor]) >= 0 and _alone(graph, tensor):
        if not operator(graph.ops[maker].kind).storage.view:
            break
        tensor = graph.ops[maker].inputs[0]
    return tensor


def _alone(graph: Graph, tensor: int) -> bool:
    """Return whether a single operator, and no caller, reads a tensor."""
    return len(graph.consumers[tensor]) == 1 and tensor not in graph.outputs


def _axes(divided: Shape, image: Shape) -> tuple[int, ...] | None:
    """Return the axis of an image for each axis of what it is a view of, None if it is no image."""
    if len(image) != 4:
        return None
    if divided == image:
        return (0, 1, 2, 3)
    if len(divided) != 3:
        return None
    batch, steps, channels = divided
    known = {(batch, 1, steps, channels): (0, 2, 3), (batch, steps, 1, channels): (0, 1, 3)}
    return known.get(image)
