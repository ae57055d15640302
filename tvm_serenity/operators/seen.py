"""An operator of a file, as what it needs is read off it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm_serenity.operators.scene import Options, Shape


@dataclass(frozen=True)
class Seen:
    """An operator of a file as rows see it.

    ``height`` is that of its outputs, ``sources`` are those of its inputs that are no constants:
    the rows of an NHWC tensor of batch 1, and 1 for what has no rows. ``shapes`` are those of all
    inputs; ``constant(i)`` gives the integers of input ``i``, none where it has none. ``outputs``
    counts the outputs.
    """

    name: str
    kind: str
    height: int
    sources: Sequence[int]
    outputs: int
    shapes: Sequence[Shape]
    options: Options
    constant: Callable[[int], Sequence[int]]
