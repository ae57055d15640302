"""Concatenations that need no kernel, because convolutions read their pieces."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Reader(Generic[T]):
    """A convolution that reads a tensor; ``whole``: each sum covers all channels.

    ``made``: its result; None if it cannot be read in pieces.
    """

    whole: bool
    made: T | None = None


def read_in_pieces(tensor: T, readers: Callable[[T], Iterable[Reader[T]] | None]) -> bool:
    """Return whether only convolutions read a tensor, and each of them can read it in pieces.

    ``readers`` returns None if any other operator reads the tensor. An ungrouped convolution can
    read all pieces. A depthwise convolution returns pieces, so its own readers must read pieces
    too.
    """
    found = readers(tensor)
    return found is not None and all(
        reader.whole or (reader.made is not None and read_in_pieces(reader.made, readers))
        for reader in found
    )
