"""Whether a program fits a board, said before anything is built: by region, with what to do."""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm_serenity.boards import Board, board, names
from tvm_serenity.firmware.memory import Placed, Room, rooms
from tvm_serenity.memory import LiveRange

CODE_BYTES = 12_288
"""Flash set aside for code before it is compiled; the linker checks what it really takes."""


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
    peak: tuple[LiveRange, ...]
    peak_bytes: int

    @property
    def fits(self) -> bool:
        """Whether no region is short."""
        return all(line.shortfall_bytes == 0 for line in self.lines)


def fit(target: Board, placed: Placed, constant_bytes: int, stack_bytes: int) -> Fit:
    """Return what ``placed`` and its constants take of ``target``.

    The flash for code is estimated (``CODE_BYTES``); RAM is exact, with ``stack_bytes`` and the C
    library's data kept free in the main region.
    """
    lines = []
    flash = max((r for r in target.regions if r.kind == "flash"), key=lambda r: r.size_bytes)
    lines.append(
        Line(
            flash.name,
            flash.kind,
            constant_bytes + CODE_BYTES,
            flash.size_bytes,
            f"{constant_bytes:,} constants + {CODE_BYTES:,} set aside for code",
        )
    )
    for i, one in enumerate(rooms(target, stack_bytes)):
        region, arena = one.region, placed.arena_bytes.get(one.region.name, 0)
        kept = region.size_bytes - one.arena_bytes if i == 0 else 0
        detail = f"{arena:,} arena" + (f" + {kept:,} stack and library" if kept else "")
        lines.append(Line(region.name, region.kind, arena + kept, region.size_bytes, detail))
    peak_bytes, peak = _peak(placed.ranges)
    return Fit(target.name, tuple(lines), peak, peak_bytes)


def _peak(ranges: Sequence[LiveRange]) -> tuple[int, tuple[LiveRange, ...]]:
    """The live bytes at the worst step, and what is alive there, largest first."""
    steps = sorted({r.start for r in ranges})
    live = [[r for r in ranges if r.start <= s < r.stop] for s in steps]
    worst = max(live, key=lambda alive: sum(r.size_bytes for r in alive), default=[])
    alive = sorted(worst, key=lambda r: (-r.size_bytes, r.name))
    return sum(r.size_bytes for r in alive), tuple(alive)


def boards_that_do(
    arena_bytes: int, constant_bytes: int, stack_bytes: int, among: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return the known boards with one region for the arena and flash for the rest.

    Least RAM first.
    """
    found = []
    for name in names() if among is None else among:
        other = board(name)
        room: tuple[Room, ...] = rooms(other, stack_bytes)
        flash = max(r.size_bytes for r in other.regions if r.kind == "flash")
        fits = any(arena_bytes <= one.arena_bytes for one in room)
        if fits and constant_bytes + CODE_BYTES <= flash:
            found.append((other.ram_bytes, name))
    return tuple(name for _, name in sorted(found))
