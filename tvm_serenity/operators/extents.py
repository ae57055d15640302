"""Shape inference from the inputs of a ``.tflite`` operator."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.operators.scene import Array, OptionsTable, Shape


@dataclass(frozen=True)
class Extents:
    """The inputs of shape inference: shapes, known integers, options.

    ``stored``: the result's shape in the file.
    """

    shapes: Sequence[Shape]
    values: Sequence[Array | None]
    options: OptionsTable
    stored: Shape

    def value(self, operand: int) -> list[int] | None:
        """Return the integers of an operand as a flat list, None if they are unknown."""
        found = self.values[operand] if operand < len(self.values) else None
        return None if found is None else [int(e) for e in found.reshape(-1)]


def alike(seen: Extents) -> Shape | None:
    """Return the broadcast shape of all operands; None if they cannot be broadcast."""
    try:
        return tuple(np.broadcast_shapes(*seen.shapes))
    except ValueError:
        return None


def as_the_first(seen: Extents) -> Shape:
    """Return the shape of the first operand."""
    return seen.shapes[0]


def of_the_batch(seen: Extents) -> Shape | None:
    """Return the stored shape with the batch of the first operand."""
    return (seen.shapes[0][0], *seen.stored[1:]) if seen.shapes[0] and seen.stored else None
