"""Shapes that depend on a counter in an expanded loop.

A loop that returns a sequence (Keras's ``return_sequences``) concatenates the slice before its
step, the step, and the slice after it. The start and length of the slices depend on the counter, so
that the file states no shape for them, and the first and last slices are empty.
"""

from dataclasses import dataclass

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.frontends._flatbuffer import Table
from tvm_serenity.frontends._tflite_schema import TensorField
from tvm_serenity.operators import inferred, operator
from tvm_serenity.operators.extents import Extents
from tvm_serenity.operators.scene import Shape


@dataclass(frozen=True)
class Reshaped:
    """A tensor of the file with a shape other than the file's."""

    table: Table
    shape: Shape


def is_reshaped(tensor: object) -> bool:
    """Return whether a tensor has another shape than the file states."""
    if not isinstance(tensor, Reshaped):
        return False
    return tensor.shape != tensor.table.ints(TensorField.SHAPE)


def shape_of(kind: str, seen: Extents, made: Table, follows: bool) -> Shape | None:
    """Return the shape of a result that the file does not state; None for the stored shape.

    ``follows``: an operand has another shape than stored. Raises :class:`UnsupportedError` if it
    has, and no rule gives the shape of the result.
    """
    known = operator(kind)
    unsaid = known.shapes.by_turn and -1 in made.ints(TensorField.SHAPE_SIGNATURE)
    if not follows and not unsaid:
        return None
    found = inferred.shape_of(known, seen)
    if found is None and follows:
        name = made.string(TensorField.NAME)
        raise UnsupportedError(
            f"tensor {name!r}: unknown dimension in shape {list(seen.stored)}, which "
            f"depends on the iteration of a loop through {kind}"
        )
    return found
