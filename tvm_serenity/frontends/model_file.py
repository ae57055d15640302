"""What every file frontend returns, and what they share."""

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Protocol

from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.graph import MAX_BYTES, Graph, is_order

_MAX_MESSAGE = 500
REMEDY = "write it as other operators, or compute it outside of the network"
"""For operators without a conversion."""
SIZED = "give the inputs fixed sizes, and compute others from constants and shapes alone"
"""For values whose sizes are known at run time only."""
MOST_WRITTEN_OUT = 16384
MOST_FOLLOWED = 49152
"""Operators of a network whose loops are written out, without and with what only counts."""


class ModelFile(Protocol):
    """A model as read from ``path``: its graph, and the file with its operators reordered."""

    format: ClassVar[str]
    """The name of its format (``frontends.formats``)."""

    @property
    def path(self) -> Path:
        """Where it was read from."""

    @property
    def graph(self) -> Graph:
        """The network; op ``i`` is the ``i``-th operator of the file."""

    def reordered(self, order: Sequence[int]) -> bytes:
        """The file with its operators stored in ``order``, all else kept.

        Raises :class:`InputError` where ``order`` is no topological order of all ops, and
        :class:`UnsupportedError` where something else in the file depends on the order.
        """

    def check_operators(self, integers: bool = True) -> None:
        """Raise :class:`UnsupportedError` naming every operator that has no meaning here.

        Without ``integers`` quantised ones are computed in float where there is such a form.
        """


def with_remedy(reason: str) -> str:
    """Return why an operator is refused, and what to do where the reason does not say that."""
    return reason if "; " in reason else f"{reason}; {REMEDY}"


def refused(found: Sequence[tuple[str, str, str]]) -> UnsupportedError:
    """Return the error for operators that stop a model: kind, which one, and why, of each.

    It says the first in full, and all kinds with how many there are.
    """
    (kind, which, why), counts = found[0], Counter(kind for kind, _, _ in found)
    text = f"operator {kind}{which}: {with_remedy(why)}"
    if len(found) == 1:
        return UnsupportedError(text)
    every = ", ".join(f"{count} {name}" for name, count in counts.items())
    return UnsupportedError(f"{text} ({len(found)} such operators: {every})")


def check_order(graph: Graph, order: Sequence[int]) -> None:
    """Raise :class:`InputError` unless ``order`` is a topological order of all ops."""
    if not is_order(graph, order):
        raise InputError(f"{graph.name}: not a topological order of its {len(graph.ops)} ops")


def size_bytes(name: str, shape: Sequence[int], bits: int) -> int:
    """Return the bytes of a tensor, packed where an element has less than 8 bits."""
    if any(dim < 0 for dim in shape):
        raise UnsupportedError(f"tensor {name!r}: unknown dimension in shape {list(shape)}")
    if 0 in shape:
        return 0
    if len(shape) > 64 or math.prod(shape) * bits > 8 * MAX_BYTES:
        raise UnsupportedError(f"tensor {name!r}: more than {MAX_BYTES} bytes")
    return -(-math.prod(shape) * bits // 8)


def printable(name: str | bytes) -> str:
    """Return ``name`` with what a terminal would act on, or not show, written as escapes.

    Bytes are what protobuf gives for a name that is no UTF-8.
    """
    text = name.decode(errors="backslashreplace") if isinstance(name, bytes) else name
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def one_line(message: str) -> str:
    """Return ``message`` on one line, cut where names of a damaged file make it long."""
    line = printable(" ".join(message.split()))
    return line if len(line) <= _MAX_MESSAGE else f"{line[:_MAX_MESSAGE]}..."


def unique(names: Iterable[str]) -> list[str]:
    """Return ``names``, printable, with repeats told apart by ``_2``, ``_3``, ... as met."""
    listed = [printable(name) for name in names]
    taken = set(listed)
    count: dict[str, int] = {}
    result = []
    for name in listed:
        count[name] = count.get(name, 0) + 1
        fresh = name
        while count[name] > 1 and fresh in taken:
            fresh = f"{name}_{count[name]}"
            count[name] += fresh in taken
        taken.add(fresh)
        result.append(fresh)
    return result


def named_axis(name: str, axis: int) -> str:
    """Return what a dimension without a name is called: an axis of the input ``name``."""
    return f"{name}:{axis}"


def checked_size(name: str, size: int) -> None:
    """Raise :class:`InputError` unless a dimension may be of this size."""
    if size < 1:
        raise InputError(f"dimension {name!r}: {size} is not a size, it must be at least 1")


def asking(names: Iterable[str]) -> str:
    """Return what to write on the command line to give the dimensions ``names`` a size of 1."""
    return " ".join(f"--dim {shlex.quote(name)}=1" for name in names)
