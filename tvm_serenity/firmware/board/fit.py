"""Check whether a program fits a board, by memory region, and find boards that it fits."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from tvm_serenity.boards import Board, MemoryRegion, board, names
from tvm_serenity.firmware.place.memory_map import MemoryMap, Room, rooms
from tvm_serenity.memory import LiveRange


@dataclass(frozen=True)
class Line:
    """One region: the bytes needed and available; ``shortfall_bytes`` above 0: too small."""

    region: str
    kind: str
    need_bytes: int
    size_bytes: int
    detail: str

    @property
    def shortfall_bytes(self) -> int:
        """The bytes missing; 0 if it fits."""
        return max(self.need_bytes - self.size_bytes, 0)


@dataclass(frozen=True)
class Fit:
    """The need and size of each memory region of a board."""

    board: str
    lines: tuple[Line, ...]
    ranges: tuple[LiveRange, ...] = field(repr=False)

    @cached_property
    def peak(self) -> tuple[LiveRange, ...]:
        """The live ranges at the step with the most live bytes, largest first."""
        return _peak(self.ranges)

    @property
    def peak_bytes(self) -> int:
        """The live bytes at the worst step."""
        return sum(r.size_bytes for r in self.peak)

    @property
    def fits(self) -> bool:
        """Whether every region is large enough."""
        return all(line.shortfall_bytes == 0 for line in self.lines)


@dataclass(frozen=True)
class Attempt:
    """A strategy with which a network was built: its arena, and whether that fits.

    If the build failed, ``reason`` says why, and there is no arena.
    """

    how: str
    arena_bytes: int | None = None
    fits: bool = False
    reason: str | None = None

    def text(self) -> str:
        """The strategy and its outcome in words."""
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
    """Return the bytes that ``placed`` and its constants take of each region of ``target``.

    ``copied_bytes`` of the constants are copied to the main region. ``code_bytes`` is the flash
    that a linked image takes beside ``constant_bytes``; None if not linked: then only constants are
    counted. RAM is exact; ``stack_bytes`` and the C library's data stay free in the main region.
    """
    flash = flash_of(target)
    code = "code not measured" if code_bytes is None else f"{code_bytes:,} code and tables"
    need, detail = constant_bytes + (code_bytes or 0), f"{constant_bytes:,} constants + {code}"
    lines = [Line(flash.name, flash.kind, need, flash.size_bytes, detail)]
    for i, one in enumerate(rooms(target, stack_bytes)):
        region, arena = one.region, placed.arena_bytes.get(one.region.name, 0)
        kept = region.size_bytes - one.arena_bytes if i == 0 else 0
        copied = copied_bytes if i == 0 else 0
        detail = f"{arena:,} arena" + (f" + {kept:,} stack and library" if kept else "")
        detail += f" + {copied:,} constants" * (copied > 0)
        needed = arena + kept + copied
        lines.append(Line(region.name, region.kind, needed, region.size_bytes, detail))
    return Fit(target.name, tuple(lines), placed.ranges)


def flash_of(target: Board) -> MemoryRegion:
    """Return the region that holds code and constants."""
    return max((r for r in target.regions if r.kind == "flash"), key=lambda r: r.size_bytes)


def constants_fit(target: Board, constant_bytes: int) -> bool:
    """Return whether a program's constants alone fit the flash; no strategy reduces them."""
    return constant_bytes < flash_of(target).size_bytes


def _peak(ranges: Sequence[LiveRange]) -> tuple[LiveRange, ...]:
    """Return the live ranges at the step with the most live bytes, largest first."""
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
    """Return the boards with one region for the arena, and flash for code and constants.

    Boards are sorted by RAM, the least first.
    """
    found = []
    for name in names() if among is None else among:
        other = board(name)
        room: tuple[Room, ...] = rooms(other, stack_bytes)
        fits = any(arena_bytes <= one.arena_bytes for one in room)
        if fits and flash_bytes <= flash_of(other).size_bytes:
            found.append((other.ram_bytes, name))
    return tuple(name for _, name in sorted(found))
