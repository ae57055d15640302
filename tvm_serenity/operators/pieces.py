"""Which concats are not made: convolutions that alone read one take its parts, one by one."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Reader(Generic[T]):
    """A convolution that reads a tensor, ungrouped (``whole``) or a channel at a time.

    ``made``: what it stores; None where that is read by something else as well.
    """

    whole: bool
    made: T | None = None


def read_in_pieces(tensor: T, readers: Callable[[T], Iterable[Reader[T]] | None]) -> bool:
    """Return whether convolutions alone read a tensor, each of which can read it in pieces.

    ``readers`` of a tensor: None where anything but such a convolution reads it. An ungrouped
    convolution reads all pieces; a depthwise one makes a piece of each, which is no gain unless
    its own readers take pieces.
    """
    found = readers(tensor)
    return found is not None and all(
        reader.whole or (reader.made is not None and read_in_pieces(reader.made, readers))
        for reader in found
    )
