"""Concatenations that need no kernel: convolutions that read only their pieces."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Reader(Generic[T]):
    """A convolution that reads a tensor: all channels (``whole``) or one channel at a time.

    ``made``: its result; None if other operators read the result too.
    """

    whole: bool
    made: T | None = None


def read_in_pieces(tensor: T, readers: Callable[[T], Iterable[Reader[T]] | None]) -> bool:
    """Return whether only convolutions read a tensor, and each can read it in pieces.

    ``readers``: None if any other operator reads the tensor. An ungrouped convolution reads all
    pieces. A depthwise convolution returns pieces, which only helps if its own readers take pieces.
    """
    found = readers(tensor)
    return found is not None and all(
        reader.whole or (reader.made is not None and read_in_pieces(reader.made, readers))
        for reader in found
    )
