"""The interface of model files, and functions that all formats share."""

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Protocol

from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.graph import MAX_BYTES, Graph, is_order

_MAX_MESSAGE = 500
REMEDY = "replace it by other operators, or compute it outside of the network"
"""Advice for operators without a conversion."""
SIZED = "give the inputs fixed sizes, and compute other sizes from constants and shapes alone"
"""Advice for values whose sizes are known only at run time."""
MOST_WRITTEN_OUT = 16384
MOST_FOLLOWED = 49152
"""Largest number of operators of an expanded network: without, and with counters and conditions."""


class ModelFile(Protocol):
    """A model read from ``path``: its graph, and the file with its operators reordered."""

    format: ClassVar[str]
    """The name of its format (``frontends.formats``)."""

    @property
    def path(self) -> Path:
        """The path it was read from."""

    @property
    def graph(self) -> Graph:
        """The network; operator ``i`` is the ``i``-th operator of the file."""

    def reordered(self, order: Sequence[int]) -> bytes:
        """Return the file with its operators in ``order`` and no other change.

        Raises :class:`InputError` if ``order`` is no topological order of all operators, and
        :class:`UnsupportedError` if other parts of the file depend on the order.
        """

    def check_operators(self, integers: bool = True) -> None:
        """Raise :class:`UnsupportedError` with all operators that cannot be compiled.

        Without ``integers``, a quantised operator is supported if its float form is.
        """


def with_remedy(reason: str) -> str:
    """Return the reason why an operator is refused, with a general remedy if it has none."""
    return reason if "; " in reason else f"{reason}; {REMEDY}"


def refused(found: Sequence[tuple[str, str, str]]) -> UnsupportedError:
    """Return the error for unsupported operators, given as kind, name and reason of each.

    The message describes the first one, and states the count of each kind.
    """
    (kind, which, why), counts = found[0], Counter(kind for kind, _, _ in found)
    text = f"operator {kind}{which}: {with_remedy(why)}"
    if len(found) == 1:
        return UnsupportedError(text)
    every = ", ".join(f"{count} {name}" for name, count in counts.items())
    return UnsupportedError(f"{text} ({len(found)} such operators: {every})")


def check_order(graph: Graph, order: Sequence[int]) -> None:
    """Raise :class:`InputError` unless ``order`` is a topological order of all operators."""
    if not is_order(graph, order):
        raise InputError(
            f"{graph.name}: the order is not a topological order of its {len(graph.ops)} ops; "
            "list each op once, after its predecessors"
        )


def size_bytes(name: str, shape: Sequence[int], bits: int) -> int:
    """Return the bytes of a tensor, packed if an element has less than 8 bits."""
    if any(dim < 0 for dim in shape):
        raise UnsupportedError(
            f"tensor {name!r}: unknown dimension in shape {list(shape)}; give it a fixed size"
        )
    if 0 in shape:
        return 0
    if len(shape) > 64 or math.prod(shape) * bits > 8 * MAX_BYTES:
        raise UnsupportedError(
            f"tensor {name!r}: shape {list(shape)} takes more than {MAX_BYTES} bytes, the limit"
        )
    return -(-math.prod(shape) * bits // 8)


def printable(name: str | bytes) -> str:
    """Return ``name`` with control and invisible characters escaped.

    Bytes are what protobuf returns for a name that is not UTF-8.
    """
    text = name.decode(errors="backslashreplace") if isinstance(name, bytes) else name
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def one_line(message: str) -> str:
    """Return ``message`` on one line, shortened if names in a damaged file make it long."""
    line = printable(" ".join(message.split()))
    return line if len(line) <= _MAX_MESSAGE else f"{line[:_MAX_MESSAGE]}..."


def unique(names: Iterable[str]) -> list[str]:
    """Return ``names``, printable, with ``_2``, ``_3``, ... appended to repeated ones."""
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
    """Return the name of an unnamed dimension: an axis of the input ``name``."""
    return f"{name}:{axis}"


def checked_size(name: str, size: int) -> None:
    """Raise :class:`InputError` unless ``size`` is a valid size of a dimension."""
    if size < 1:
        raise InputError(f"dimension {name!r}: {size} is not a size; give at least 1")


def asking(names: Iterable[str]) -> str:
    """Return the command line options that give the dimensions ``names`` a size of 1."""
    return " ".join(f"--dim {shlex.quote(name)}=1" for name in names)
