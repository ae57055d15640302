"""Claims: a sentence with the numbers that support it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

LONGEST_NAME = 60

T = TypeVar("T")


@dataclass(frozen=True)
class Claim:
    """A sentence ``text`` on the subject ``kind``, with the ``numbers`` that support it.

    ``details`` computes further numbers, which only JSON shows.
    """

    kind: str
    text: str
    numbers: Mapping[str, Any]
    details: Callable[[], Mapping[str, Any]] = dict

    def json(self) -> dict[str, Any]:
        """Return the claim as ``--json`` prints it."""
        return {"kind": self.kind, "text": self.text, **self.numbers, **self.details()}


def no_time(subject: str, done: str = "tried") -> Claim:
    """Return the claim that ``subject`` was not ``done`` because of the time limit."""
    return Claim("refused", f"{subject}: not {done}, there was no time.", {"reason": "no time"})


def counted(count: int) -> str:
    """Return ``count`` with separated thousands and the unit "bytes"."""
    return f"{count:,} byte" + ("s" if count != 1 else "")


def listed(items: Sequence[T], most: int = 4, named: Callable[[T], str] = str) -> str:
    """Return a list of ``items`` in a sentence; items beyond ``most`` are counted."""
    shown = [named(item) for item in items[:most]]
    if len(items) > most:
        shown.append(f"{len(items) - most} more")
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def quoted(name: str) -> str:
    """Return ``name`` in quotes, shortened to ``LONGEST_NAME`` characters."""
    return repr(name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}...")
