"""Dimensions of inputs by name: the file's own, or ``INPUT:AXIS`` where it has none."""

import shlex
from collections.abc import Iterable

from tvm_serenity.errors import InputError


def named_axis(name: str, axis: int) -> str:
    """Return what an axis of the input ``name`` is called."""
    return f"{name}:{axis}"


def checked_size(name: str, size: int) -> None:
    """Raise :class:`InputError` unless a dimension may be of this size."""
    if size < 1:
        raise InputError(f"dimension {name!r}: {size} is not a size, it must be at least 1")


def asking(names: Iterable[str]) -> str:
    """Return what to write on the command line to give the dimensions ``names`` a size of 1."""
    return " ".join(f"--dim {shlex.quote(name)}=1" for name in names)
