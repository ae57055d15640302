"""States and moves of the order search in plain Python; sets of ops are integers as bit masks."""

from collections.abc import Iterator
from dataclasses import dataclass, field


def bits(mask: int) -> Iterator[int]:
    """The members of a set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass
class Closure:
    """One distinct C(t) or C(u): all that must run before t can die or u can have run (R1)."""

    mask: int
    weight: int = 0
    workspace_op: int = -1
    takers: list[int] = field(default_factory=list)
    covers: list[int] = field(default_factory=list)
    covered: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SearchState:
    """A state: the ops that have run, the closures inside, and those that may be moves."""

    mask: int
    complete: int
    active: tuple[int, ...]
    live: int


@dataclass(frozen=True, slots=True)
class Move:
    """A block of ops: the live bytes after it, the most it needs, the op that runs last or -1."""

    live: int
    key: int
    id: int
    block: int
    last: int
    commits: bool


@dataclass(slots=True)
class Group:
    """Candidate moves with the same block."""

    id: int
    block: int
    size: int
    workspace_op: int
    minimal: bool
    takers: list[int]
