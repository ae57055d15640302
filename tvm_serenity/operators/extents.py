"""How the shape of a result follows from what an operator of a ``.tflite`` file reads."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.operators.scene import Array, OptionsTable, Shape


@dataclass(frozen=True)
class Extents:
    """What an operator reads: shapes, integers where these are known, options.

    ``stored``: the shape that the file says of the result.
    """

    shapes: Sequence[Shape]
    values: Sequence[Array | None]
    options: OptionsTable
    stored: Shape

    def value(self, operand: int) -> list[int] | None:
        """Return the integers of an operand, in a row."""
        found = self.values[operand] if operand < len(self.values) else None
        return None if found is None else [int(e) for e in found.reshape(-1)]


def alike(seen: Extents) -> Shape | None:
    """Return what the shapes of all operands are broadcast to; None where they do not fit."""
    try:
        return tuple(np.broadcast_shapes(*seen.shapes))
    except ValueError:
        return None


def as_the_first(seen: Extents) -> Shape:
    """Return the shape of the first operand."""
    return seen.shapes[0]


def of_the_batch(seen: Extents) -> Shape | None:
    """Return the stored shape, but for the batch, which is that of the first operand."""
    return (seen.shapes[0][0], *seen.stored[1:]) if seen.shapes[0] and seen.stored else None
