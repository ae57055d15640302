"""A copy between fast and slow memory, or within fast memory, in a program of unsplit tensors.

A tensor that is evicted and read again is a tensor of the program each time it is in fast memory,
and one in slow memory, its home. So each has one place, and a copy is from a tensor to a tensor.
"""

from dataclasses import dataclass

START, DONE = "start", "done"
"""The functions that begin a copy between memories and wait for it, without the network's name."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Tensor ``source`` is copied to tensor ``target`` before call ``call``, or after the last."""

    call: int
    source: int
    target: int
