"""A sentence and the numbers it was made from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

LONGEST_NAME = 60

T = TypeVar("T")


@dataclass(frozen=True)
class Claim:
    """``text`` in plain words; ``kind`` says what about; ``numbers`` are what it rests on.

    ``details`` works out more of them, which nothing but JSON shows.
    """

    kind: str
    text: str
    numbers: Mapping[str, Any]
    details: Callable[[], Mapping[str, Any]] = dict

    def json(self) -> dict[str, Any]:
        """Return the claim as JSON has it."""
        return {"kind": self.kind, "text": self.text, **self.numbers, **self.details()}


def no_time(what: str, done: str = "tried") -> Claim:
    """Return the claim that the time limit left no time for something."""
    return Claim("refused", f"{what}: not {done}, there was no time.", {"reason": "no time"})


def counted(count: int) -> str:
    """Return bytes in words, thousands separated."""
    return f"{count:,} byte" + ("s" if count != 1 else "")


def listed(items: Sequence[T], most: int = 4, named: Callable[[T], str] = str) -> str:
    """Return items as a list in words, at most ``most`` of them named."""
    shown = [named(item) for item in items[:most]]
    if len(items) > most:
        shown.append(f"{len(items) - most} more")
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def quoted(name: str) -> str:
    """Return a name in quotes, shortened where a converter made it long."""
    return repr(name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}...")
