"""The model of docs/offchip.md word by word: slow, no code shared with the library."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Line:
    """A resident block."""

    block: int
    came: int
    used: int
    slot: int
    dirty: bool = False


@dataclass
class Memory:
    """On-chip memory that counts what it moves; ``trace`` holds (block, letter) in time order."""

    trace: Sequence[tuple[int, str]]
    sizes: Sequence[int]
    rooms: Sequence[int]
    kept: Sequence[bool]
    capacity: int
    policy: str
    lines: list[Line] = field(default_factory=list)
    off_chip: set[int] = field(default_factory=set)
    hand: int = 0
    read: int = 0
    write: int = 0

    def run(self, groups: Sequence[tuple[int, int, int]]) -> tuple[int, int]:
        """Run (first, last + 1, reserved bytes) after another."""
        for first, stop, reserved in groups:
            now_used = {block for block, _ in self.trace[first:stop]}
            self.make_room(reserved, now_used, first)
            for time in range(first, stop):
                self.access(time, now_used, reserved)
            for block in now_used:
                self.maybe_drop(block, stop - 1)
        return self.read, self.write

    def find(self, block: int) -> Line | None:
        return next((line for line in self.lines if line.block == block), None)

    def access(self, time: int, now_used: set[int], reserved: int) -> None:
        block, letter = self.trace[time]
        line = self.find(block)
        if line is None:
            if letter in "rm":
                assert block in self.off_chip, "the trace reads what is nowhere"
                self.read += self.sizes[block]
            self.make_room(reserved + self.rooms[block], now_used, time)
            slots = {other.slot for other in self.lines}
            line = Line(block, time, time, min(set(range(len(slots) + 1)) - slots))
            self.lines.append(line)
        line.used = time
        if letter in "wm":
            line.dirty = True
            self.off_chip.discard(block)

    def make_room(self, wanted: int, pinned: set[int], time: int) -> None:
        while sum(self.rooms[line.block] for line in self.lines) + wanted > self.capacity:
            self.evict(self.choose([x for x in self.lines if x.block not in pinned], time))

    def evict(self, line: Line) -> None:
        if line.dirty:
            self.write += self.sizes[line.block]
            self.off_chip.add(line.block)
        self.lines.remove(line)

    def choose(self, lines: list[Line], time: int) -> Line:
        assert lines, "the group does not fit"
        if self.policy == "belady":
            return max(lines, key=lambda line: self.wait(line.block, line.used))
        if self.policy == "belady-writes":
            # clean before dirty where both gain the same
            gain = {
                line.block: (self.wait(line.block, line.used) - time) * (1 if line.dirty else 2)
                for line in lines
            }
            return max(lines, key=lambda line: (gain[line.block], not line.dirty))
        if self.policy == "lru":
            return min(lines, key=lambda line: line.used)
        if self.policy == "fifo":
            return min(lines, key=lambda line: line.came)
        after = [line for line in lines if line.slot >= self.hand] or lines
        chosen = min(after, key=lambda line: line.slot)
        self.hand = chosen.slot + 1
        return chosen

    def wait(self, block: int, used: int) -> int:
        return next(t for t in range(used + 1, len(self.trace)) if self.trace[t][0] == block)

    def maybe_drop(self, block: int, time: int) -> None:
        """Drop what is not read again; an output's last content is written first."""
        later = [letter for other, letter in self.trace[time + 1 :] if other == block]
        if later and later[0] != "w":
            return
        line = self.find(block)
        assert line is not None
        if not later and self.kept[block] and line.dirty:
            self.write += self.sizes[block]
        self.lines.remove(line)
