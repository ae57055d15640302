"""The axis of each tensor along which a network runs in rows.

A row must be one block of memory, so all axes before that of the rows have one element, and no
tensor is transposed: the rows of an image are its height, those of a sound or a sensor are its
steps of time, whether it is stored as ``[1, time, channels]``, ``[1, 1, time, channels]`` or
``[time, channels]``, and those of a sequence are its tokens. A plan that is free to store tensors
in another order than their shapes say may have rows along any axis (:func:`stored_axes`).
"""

from collections.abc import Callable, Sequence
from math import prod

from tvm_serenity.graph.network import Graph
from tvm_serenity.graph.parts import Op

Shape = tuple[int, ...]
Moved = Callable[[int, Sequence[int | None]], int | None]
IMAGE_AXES = 4
"""The axes of a tensor by rows: one, rows, elements of a row, channels."""


def row_axes(graph: Graph, moved: Moved | None = None) -> tuple[int | None, ...]:
    """Return the axis of the rows of each tensor, None for a tensor without rows.

    ``moved``: from the number of an operator and the axes so far, the axis of its result's rows,
    which may be any axis; None for an operator that does what all do.
    An operator keeps the rows of the first input that has some. Rows begin at the graph's inputs,
    and at views of inputs that are stored without axes; behind other tensors without rows, such as
    a vector, they begin at images alone. Results of one operator with different numbers of rows,
    such as a sequence and the state behind it, have none.
    """
    axes: list[int | None] = [None] * len(graph.tensors)
    for tensor in graph.inputs:
        axes[tensor] = free_axis(graph.tensors[tensor].shape or ())
    for index, op in enumerate(graph.ops):
        if index in graph.constant_ops:
            continue
        read = [t for t in op.inputs if graph.in_profile[t]]
        source = next((t for t in read if axes[t] is not None), None)
        begins = op.view_of in graph.inputs
        for made in op.outputs:
            shape = graph.tensors[made].shape or ()
            known = None if moved is None or source is None else moved(index, axes)
            if known is not None:
                axes[made] = known
            elif source is None:
                axes[made] = free_axis(shape) if begins else _of_image(shape)
            else:
                axes[made] = _kept(graph, op, source, axes[source] or 0, shape)
        if len({_rows(graph, made, axes[made]) for made in op.outputs}) > 1:
            for made in op.outputs:
                axes[made] = None
    return tuple(axes)


def stored_axes(graph: Graph, moved: Moved) -> tuple[int | None, ...]:
    """Return the axis of the rows of each tensor, where tensors may be stored row by row.

    ``moved`` as in :func:`row_axes`. A tensor is stored in another order only if all operators that
    read it follow its rows; inputs and outputs of the graph keep theirs.
    """
    plain: set[int] = set()

    def followed(index: int, axes: Sequence[int | None]) -> int | None:
        (made, *others), axis = graph.ops[index].outputs, moved(index, axes)
        stays = made in plain and is_turned(graph.tensors[made].shape or (), axis)
        return None if stays or others else axis

    while True:
        axes = row_axes(graph, followed)
        turned = {t for t, axis in enumerate(axes) if is_turned(graph.tensors[t].shape or (), axis)}
        wrong = turned & set(graph.outputs)
        for index, op in enumerate(graph.ops):
            if index not in graph.constant_ops and followed(index, axes) is None:
                wrong |= turned & set(op.inputs)
        if not wrong:
            return axes
        plain |= wrong


def free_axis(shape: Shape) -> int | None:
    """Return the first axis of several elements, None if there is none before the last axis."""
    return next((axis for axis, extent in enumerate(shape[:-1]) if extent > 1), _of_image(shape))


def upright(shape: Shape, axis: int | None) -> Shape:
    """Return the shape ``[1, rows, elements, channels]`` of the same bytes.

    A shape without rows stays as it is. Raises :class:`ValueError` if a row is not one block of
    memory.
    """
    if axis is None:
        return shape
    if not _is_first(shape, axis):
        raise ValueError(f"{list(shape)} has several elements before axis {axis}")
    return by_rows(shape, axis)


def by_rows(shape: Shape, axis: int) -> Shape:
    """Return the shape ``[1, rows, elements, channels]`` of a tensor that is stored row by row.

    The other axes keep their order in each row.
    """
    others = shape[:axis] + shape[axis + 1 :]
    return (1, shape[axis], prod(others[:-1]), others[-1])


def is_turned(shape: Shape, axis: int | None) -> bool:
    """Return whether a tensor that is stored row by row has its elements in another order."""
    return axis is not None and prod(shape[:axis]) != 1


def _rows(graph: Graph, tensor: int, axis: int | None) -> int:
    return 1 if axis is None else (graph.tensors[tensor].shape or ())[axis]


def _kept(graph: Graph, op: Op, source: int, axis: int, shape: Shape) -> int | None:
    """Return the axis of a result with the rows that axis ``axis`` of a source holds."""
    before = graph.tensors[source].shape or ()
    view = op.view_of is not None
    if view or len(before) != len(shape):
        for candidate, extent in enumerate(shape[:-1]):
            if extent == before[axis] and _is_first(shape, candidate):
                return candidate
    if view:
        return _of_image(shape)
    free = free_axis(shape)
    if _of_time(before, axis) and free is not None and _of_time(shape, free):
        return free
    if len(before) == len(shape) and _is_first(shape, axis):
        return axis
    return _of_image(shape)


def _of_image(shape: Shape) -> int | None:
    """Return the axis of an image's height, None for other tensors."""
    return 1 if len(shape) == IMAGE_AXES and shape[0] == 1 else None


def _is_first(shape: Sequence[int], axis: int) -> bool:
    """Return whether all axes before one have a single element."""
    return axis < len(shape) - 1 and prod(shape[:axis]) == 1


def _of_time(shape: Shape, axis: int) -> bool:
    """Return whether a row has channels alone."""
    return _is_first(shape, axis) and prod(shape[axis + 1 : -1]) == 1
