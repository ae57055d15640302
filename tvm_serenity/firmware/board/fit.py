"""Whether a program fits a board, by region, and which boards it fits."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

from tvm_serenity.boards import Board, MemoryRegion, board, names
from tvm_serenity.firmware.place.memory_map import MemoryMap, Room, rooms, rooms_with
from tvm_serenity.memory import LiveRange


@dataclass(frozen=True)
class Line:
    """A region of a board: the bytes that a program needs of it, and its size."""

    region: str
    kind: str
    need_bytes: int
    size_bytes: int
    detail: str

    @property
    def shortfall_bytes(self) -> int:
        """The missing bytes; 0 if the program fits the region."""
        return max(self.need_bytes - self.size_bytes, 0)


@dataclass(frozen=True)
class Fit:
    """The need of a program in each region of a board."""

    board: str
    lines: tuple[Line, ...]
    ranges: tuple[LiveRange, ...] = field(repr=False)

    @cached_property
    def peak(self) -> tuple[LiveRange, ...]:
        """The live ranges at the step of the peak, largest first."""
        return _peak(self.ranges)

    @property
    def peak_bytes(self) -> int:
        """The live bytes at the step of the peak."""
        return sum(r.size_bytes for r in self.peak)

    @property
    def fits(self) -> bool:
        """Whether every region is large enough."""
        return all(line.shortfall_bytes == 0 for line in self.lines)

    def json(self) -> list[dict[str, Any]]:
        """Return the needs as JSON, region by region."""
        return [
            {
                "name": line.region,
                "kind": line.kind,
                "need_bytes": line.need_bytes,
                "size_bytes": line.size_bytes,
                "shortfall_bytes": line.shortfall_bytes,
                "detail": line.detail,
            }
            for line in self.lines
        ]


@dataclass(frozen=True)
class Attempt:
    """A strategy that was tried for a network: its arena, and whether the arena fits.

    If the strategy does not apply, ``reason`` says why, and there is no arena.
    """

    strategy: str
    arena_bytes: int | None = None
    fits: bool = False
    reason: str | None = None

    def text(self) -> str:
        """Return the attempt as text, such as "unsplit, in place 12,345 (too much)"."""
        if self.arena_bytes is None:
            return f"{self.strategy}: {self.reason}"
        return f"{self.strategy} {self.arena_bytes:,}{'' if self.fits else ' (too much)'}"


def fit(
    target: Board,
    placed: MemoryMap,
    constant_bytes: int,
    stack_bytes: int,
    code_bytes: int | None = None,
    copied_bytes: int = 0,
) -> Fit:
    """Return the need of a placement and its constants in each region of ``target``.

    ``copied_bytes`` of the constants are copied to the main region. ``code_bytes``: the bytes of
    flash that a linked image takes beside ``constant_bytes``; None if it is not linked, and only
    the constants are counted. RAM is exact: ``stack_bytes`` and the data of the C library stay free
    in the main region.
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


def shortage(found: Fit, arena: int, limit: int | None, beyond: str = "") -> str:
    """Return the reason why a project does not fit as text; ``beyond``: of its fast memory."""
    short = [
        f"{line.region} is {line.shortfall_bytes:,} bytes short"
        for line in found.lines
        if line.shortfall_bytes
    ]
    if limit is not None and arena > limit:
        short.append(f"an arena of {arena:,} bytes, {limit:,} allowed")
    short += [beyond] if beyond else []
    return f"does not fit {found.board}: {'; '.join(short) or 'what it keeps in RAM has no room'}"


def flash_of(target: Board) -> MemoryRegion:
    """Return the region of code and constants: the largest flash."""
    return max((r for r in target.regions if r.kind == "flash"), key=lambda r: r.size_bytes)


def constants_fit(target: Board, constant_bytes: int) -> bool:
    """Return whether a program's constants leave flash for its code.

    If not, no strategy makes the program fit: none has fewer constants.
    """
    return constant_bytes < flash_of(target).size_bytes


def _peak(ranges: Sequence[LiveRange]) -> tuple[LiveRange, ...]:
    """Return the live ranges at the step of the peak, largest first."""
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
    """Return the known boards that fit, by ascending RAM.

    One region holds the arena, and the flash holds code and constants.
    """
    fitting = []
    for name in names() if among is None else among:
        other = board(name)
        room: tuple[Room, ...] = rooms(other, stack_bytes)
        fits = any(arena_bytes <= one.arena_bytes for one in room)
        if fits and flash_bytes <= flash_of(other).size_bytes:
            fitting.append((other.ram_bytes, name))
    return tuple(name for _, name in sorted(fitting))
