"""Whether a program fits a board, by region, and which boards would do."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from tvm_serenity.boards import Board, MemoryRegion, board, names
from tvm_serenity.firmware.place.memory_map import MemoryMap, Room, rooms, rooms_with
from tvm_serenity.memory import LiveRange


@dataclass(frozen=True)
class Line:
    """One region: what is needed of it, what it has; ``shortfall_bytes`` above 0 is too little."""

    region: str
    kind: str
    need_bytes: int
    size_bytes: int
    detail: str

    @property
    def shortfall_bytes(self) -> int:
        """Bytes that are missing; 0 where it fits."""
        return max(self.need_bytes - self.size_bytes, 0)


@dataclass(frozen=True)
class Fit:
    """The regions of a board under a program's need."""

    board: str
    lines: tuple[Line, ...]
    ranges: tuple[LiveRange, ...] = field(repr=False)

    @cached_property
    def peak(self) -> tuple[LiveRange, ...]:
        """What is alive at the worst step, largest first."""
        return _peak(self.ranges)

    @property
    def peak_bytes(self) -> int:
        """The live bytes at the worst step."""
        return sum(r.size_bytes for r in self.peak)

    @property
    def fits(self) -> bool:
        """Whether no region is short."""
        return all(line.shortfall_bytes == 0 for line in self.lines)


@dataclass(frozen=True)
class Attempt:
    """A way in which a network was tried: its arena, and whether that fits.

    Where it cannot be built so, ``reason`` says why, and there is no arena.
    """

    how: str
    arena_bytes: int | None = None
    fits: bool = False
    reason: str | None = None

    def text(self) -> str:
        """The same in words."""
        if self.arena_bytes is None:
            return f"{self.how}: {self.reason}"
        return f"{self.how} {self.arena_bytes:,}{'' if self.fits else ' (too much)'}"


def fit(
    target: Board,
    placed: MemoryMap,
    constant_bytes: int,
    stack_bytes: int,
    code_bytes: int | None = None,
    copied_bytes: int = 0,
) -> Fit:
    """Return what ``placed`` and its constants take of ``target``.

    ``copied_bytes`` of them are copied to the main region.

    ``code_bytes`` is what a linked image takes of the flash beside ``constant_bytes``; None: not
    linked, so that constants alone are counted. RAM is exact, with ``stack_bytes`` and the C
    library's data kept free in the main region.
    """
    flash = flash_of(target)
    code = "code not measured" if code_bytes is None else f"{code_bytes:,} code and tables"
    need, detail = constant_bytes + (code_bytes or 0), f"{constant_bytes:,} constants + {code}"
    lines = [Line(flash.name, flash.kind, need, flash.size_bytes, detail)]
    for i, one in enumerate(rooms_with(target, stack_bytes, placed.arena_bytes)):
        region, arena = one.region, placed.arena_bytes.get(one.region.name, 0)
        kept = region.size_bytes - one.arena_bytes if i == 0 else 0
        copied = copied_bytes if i == 0 else 0
        detail = f"{arena:,} arena" + (f" + {kept:,} stack and library" if kept else "")
        detail += f" + {copied:,} constants" * (copied > 0)
        needed = arena + kept + copied
        lines.append(Line(region.name, region.kind, needed, region.size_bytes, detail))
    return Fit(target.name, tuple(lines), placed.ranges)


def flash_of(target: Board) -> MemoryRegion:
    """Return the region that code and constants lie in."""
    return max((r for r in target.regions if r.kind == "flash"), key=lambda r: r.size_bytes)


def constants_fit(target: Board, constant_bytes: int) -> bool:
    """Whether a program's constants alone leave flash for its code; no way of running it helps."""
    return constant_bytes < flash_of(target).size_bytes


def _peak(ranges: Sequence[LiveRange]) -> tuple[LiveRange, ...]:
    """What is alive at the worst step, largest first."""
    change = Counter[int]()
    for r in ranges:
        change[r.start] += r.size_bytes
        change[r.stop] -= r.size_bytes
    steps = sorted(change)
    live = list(accumulate(change[step] for step in steps))
    worst = steps[live.index(max(live))] if steps else 0
    there = (r for r in ranges if r.start <= worst < r.stop)
    return tuple(sorted(there, key=lambda r: (-r.size_bytes, r.name)))


def boards_that_do(
    arena_bytes: int, flash_bytes: int, stack_bytes: int, among: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return the known boards with one region for the arena, and flash for code and constants.

    Least RAM first.
    """
    found = []
    for name in names() if among is None else among:
        other = board(name)
        room: tuple[Room, ...] = rooms(other, stack_bytes)
        fits = any(arena_bytes <= one.arena_bytes for one in room)
        if fits and flash_bytes <= flash_of(other).size_bytes:
            found.append((other.ram_bytes, name))
    return tuple(name for _, name in sorted(found))
