"""Counts the blocks that a project's harness runs in QEMU, from QEMU's log.

The log is read while it is written. It has a line for each block that runs, and the instructions of
each block when it is translated.
"""

import os
import re
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from tvm_serenity.boards import Board
from tvm_serenity.cycles.core import core_names, core_timing
from tvm_serenity.cycles.elf import program
from tvm_serenity.cycles.static import BlockCounts, BlockLine, static_cycles
from tvm_serenity.errors import CheckError
from tvm_serenity.firmware.board.execute import qemu
from tvm_serenity.firmware.board.toolchain import make
from tvm_serenity.firmware.result import Project

CHUNK_BYTES = 1 << 20
TRACE = re.compile(rb"^Trace \d+: \w+ \[[0-9a-f]*/([0-9a-f]+/[0-9a-f]*/[0-9a-f]+)\]", re.M)
"""Address, flags, and translation flags of an executed block.

The last bits of the translation flags are the number of instructions to which an interrupt of the
clock cut the block; 0 if it is complete.
"""
CUT_BITS = 0x1FF
STOPPED = re.compile(rb"^Trace [^\n]*\nStopped [^\n]*\n", re.M)
"""A block that is interrupted before it begins; the log repeats it."""
LISTED = re.compile(rb"^0x([0-9a-f]+):  ((?:[0-9a-f]{4} )+) *(\S+) *(.*)$", re.M)


def priced_alone(board: Board) -> bool:
    """Return whether ``board`` has a QEMU machine and a core with a cycle table."""
    core = board.core.cycles
    priced = core in core_names() and core_timing(core).pipeline.adds_costs
    return board.qemu is not None and priced


def static_estimate(project: Project, board: Board) -> tuple[int, tuple[int, int]]:
    """Return the instructions and cycles of one run by the core's timing table alone."""
    counts = block_counts(project, board)
    return counts.instructions, static_cycles(counts, core_timing(board.core.cycles))


def block_counts(project: Project, board: Board) -> BlockCounts:
    """Return the blocks of one run of the network, and their counts.

    If rows are fed, these are the blocks of all its calls; of a moving window, those of the last
    call, which computes one step. Raises :class:`CheckError` if the log does not show the begin and
    the end of the function.
    """
    assert board.qemu is not None
    fed = "rows" in project.metadata and project.metadata["rows"]["streamed"]
    name = f"{project.metadata['name']}_{'feed_row' if fed else 'run'}"
    inputs = [a.tobytes() for a in project.reference_inputs()]
    make(project.folder, "harness")
    found = program(project.folder / "build" / "harness.elf").find(name)
    log = _Log(-1 if found is None else found.address, project.metadata["moving"] is not None)
    with tempfile.TemporaryDirectory(prefix="serenity.") as made:
        pipe = Path(made) / "log"
        os.mkfifo(pipe)
        # While this end is open, the reader waits for neither QEMU's start nor QEMU at all.
        kept_open = os.open(pipe, os.O_RDWR)
        reader = threading.Thread(target=log.read, args=(pipe.open("rb"),), daemon=True)
        reader.start()
        try:
            options = ("-d", "exec,in_asm,nochain", "-D", str(pipe))
            qemu(project.folder, board.qemu, inputs, len(project.outputs), options=options)
        finally:
            os.close(kept_open)
            reader.join()
    if log.back is None or log.last is not None:
        raise CheckError(
            f"{project.folder}: QEMU's log does not contain the begin and the end of {name}"
        )
    return log.counts()


@dataclass
class _Log:
    """The blocks of a function that begins at ``begin`` and ends where its caller continues.

    ``only_last``: of its last call, else of all calls. Blocks have their names in the log;
    ``last``: the running block, None outside of the function.
    """

    begin: int
    only_last: bool = False
    lines: dict[int, tuple[BlockLine, ...]] = field(default_factory=dict)
    pairs: Counter[tuple[bytes, bytes]] = field(default_factory=Counter)
    last: bytes | None = None
    back: bytes | None = None
    before: tuple[bytes, ...] = ()

    def read(self, stream: BinaryIO) -> None:
        """Take the log from ``stream`` to its end, and close it."""
        rest = b""
        with stream:
            while data := stream.read(CHUNK_BYTES):
                rest += data
                # keep the last block: the next line may say that it was interrupted
                cut = rest.rfind(b"\nTrace ", 0, rest.rfind(b"\nTrace ")) + 1
                self._take(rest[:cut])
                rest = rest[cut:]
        self._take(rest)

    def _take(self, text: bytes) -> None:
        if b"Stopped" in text:
            text = STOPPED.sub(b"", text)
        for block in text.split(b"IN: ")[1:] if b"IN: " in text else ():
            made = tuple(_lines(block.split(b"\n\n")[0]))
            if made and len(made) > len(self.lines.get(made[0].address, ())):
                self.lines[made[0].address] = made
        ran = TRACE.findall(text)
        while ran:
            if self.last is None:
                ran = self._from_begin(ran)
            if self.last is None or not ran:
                return
            assert self.back is not None
            end = next((i for i, b in enumerate(ran) if b.startswith(self.back)), None)
            inside = ran if end is None else ran[: end + 1]
            self.pairs.update(zip([self.last, *inside], inside, strict=False))
            if end is None:
                self.last = inside[-1]
                return
            self.last, self.before = None, (ran[end],)
            ran = ran[end + 1 :]

    def _from_begin(self, ran: list[bytes]) -> list[bytes]:
        """Return the blocks after the first of the next call, if its caller precedes it."""
        ran = [*self.before, *ran]
        self.before = tuple(ran[-1:])
        first = next((i for i, b in enumerate(ran) if _block(b)[0] == self.begin), 0)
        if first == 0:
            return []
        caller = self._lines_of(ran[first - 1])[-1]
        self.back = b"%08x/" % (caller.address + caller.size_bytes)
        self.last = ran[first]
        if self.only_last:
            self.pairs.clear()
        return ran[first + 1 :]

    def _lines_of(self, block: bytes) -> tuple[BlockLine, ...]:
        address, cut = _block(block)
        return self.lines[address][: cut or None]

    def counts(self) -> BlockCounts:
        """Return the counts, with numbered blocks."""
        names = sorted({block for block, _ in self.pairs})
        number = {name: i for i, name in enumerate(names)}
        pairs: Counter[tuple[int, int]] = Counter()
        for (block, following), times in self.pairs.items():
            pairs[number[block], _block(following)[0]] += times
        return BlockCounts({number[n]: self._lines_of(n) for n in names}, pairs)


def _block(name: bytes) -> tuple[int, int]:
    """Return the address of a block, and the number of instructions it was cut to."""
    address, _, flags = name.split(b"/")
    return int(address, 16), int(flags, 16) & CUT_BITS


def _lines(block: bytes) -> Iterator[BlockLine]:
    for address, code, mnemonic, operands in LISTED.findall(block):
        size = 2 * len(code.split())
        yield BlockLine(int(address, 16), size, mnemonic.decode(), operands.decode().strip())
