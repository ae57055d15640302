"""States and moves of the order search in plain Python; sets of ops are bit masks."""

from collections.abc import Iterator
from dataclasses import dataclass, field


def bits(mask: int) -> Iterator[int]:
    """Yield the members of a set, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass
class Closure:
    """A closure C(t) or C(u): all ops that must run before t can die or u is finished (R1)."""

    mask: int
    weight: int = 0
    workspace_op: int = -1
    takers: list[int] = field(default_factory=list)
    covers: list[int] = field(default_factory=list)
    covered: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SearchState:
    """A state: the finished ops, the complete closures, and the closures that may be moves."""

    mask: int
    complete: int
    active: tuple[int, ...]
    live: int


@dataclass(frozen=True, slots=True)
class Move:
    """A block of ops: live bytes after it, its largest need, and the op that runs last or -1."""

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
