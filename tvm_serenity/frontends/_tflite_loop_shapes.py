"""What follows from a counter inside of a loop that is written out: places, lengths and shapes.

A loop that makes a sequence (Keras's ``return_sequences``) writes its step into a whole of all
steps: the slice before it, the step, the slice after it, joined. Where the slices begin and how
long they are is computed from the counter, so that the file knows no shape of them, and the first
and the last one are empty.
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
    """A tensor of the file whose shape is not read from there."""

    table: Table
    shape: Shape


def is_reshaped(tensor: object) -> bool:
    """Return whether a tensor has another shape than the file stores."""
    if not isinstance(tensor, Reshaped):
        return False
    return tensor.shape != tensor.table.ints(TensorField.SHAPE)


def shape_of(kind: str, seen: Extents, made: Table, follows: bool) -> Shape | None:
    """Return the shape of a result that the file does not tell; None: as it is stored.

    ``follows``: an operand has another shape than is stored. Raises :class:`UnsupportedError`
    where it does and nothing says how the result's follows from it.
    """
    known = operator(kind)
    unsaid = known.shapes.by_turn and -1 in made.ints(TensorField.SHAPE_SIGNATURE)
    if not follows and not unsaid:
        return None
    found = inferred.shape_of(known, seen)
    if found is None and follows:
        name = made.string(TensorField.NAME)
        raise UnsupportedError(
            f"tensor {name!r}: unknown dimension in shape {list(seen.stored)}, which depends on "
            f"the turn of a loop through {kind}"
        )
    return found
