"""Runs C kernels on this machine: compiles the text of a project and calls it in guarded memory.

A :class:`Trial` is memory and calls on it. ``run`` poisons all memory without given content, and
finds writes outside of the allowed blocks. This module does not use TVM.
"""

import ctypes
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from tvm_serenity.errors import CheckError
from tvm_serenity.firmware.board.toolchain import entry, require
from tvm_serenity.firmware.program import Array
from tvm_serenity.system import cache

GUARD_BYTES = 64
"""The guard bytes around each block; a write to them is an error."""
FLAGS = ("-std=gnu11", "-O1", "-ffp-contract=off", "-w", "-shared", "-fPIC")
COMPILER, MADE = "cc", "trial.so"
NOWHERE = -1
"""The number that stands for NULL in a call."""


@dataclass(frozen=True)
class Block:
    """A block of memory for a kernel: its content ``held``, or None for ``size_bytes`` of poison.

    Its address is a multiple of ``alignment``, and of no larger power of two.
    """

    size_bytes: int
    alignment: int
    held: Array | None = None
    writable: bool = False

    @staticmethod
    def of(array: Array, alignment: int, writable: bool = False) -> "Block":
        """Return a block that holds an array."""
        return Block(array.nbytes, alignment, array, writable)


@dataclass(frozen=True)
class Call:
    """A call of the kernel ``symbol``; each argument is a block's number or ``NOWHERE``."""

    symbol: str
    blocks: tuple[int, ...]


@dataclass(frozen=True)
class Trial:
    """Calls in order on blocks; the final content of the blocks ``results`` is the result."""

    blocks: tuple[Block, ...]
    calls: tuple[Call, ...]
    results: tuple[int, ...]


@dataclass(frozen=True)
class TrialResult:
    """The concatenated bytes of the results; ``damage``: other bytes that were written, or None."""

    result: Array
    damage: str | None


@dataclass
class Compilation:
    """A running compilation of sources in ``directory``; no ``process`` if it is done.

    ``entry``: the name of its result in the cache, None if it is not cached.
    """

    directory: Path
    process: "subprocess.Popen[str] | None" = None
    entry: str | None = None

    @cached_property
    def library(self) -> ctypes.CDLL:
        """Return the compiled library, or raise :class:`CheckError` with the first message."""
        made = self.directory / MADE
        if self.process is not None:
            self._wait(self.process)
            kept = cache.opened()
            if kept is not None and self.entry is not None:
                kept.put(self.entry, made.read_bytes())
        return ctypes.CDLL(str(made))

    def _wait(self, process: "subprocess.Popen[str]") -> None:
        _, said = process.communicate()
        if process.returncode:
            lines = [line for line in said.splitlines() if "error" in line] or said.splitlines()
            raise CheckError(f"{COMPILER}: {(lines or ['failed'])[0]}")

    def stop(self) -> None:
        """Stop the compiler if it still runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def compilation(
    directory: Path, texts: Mapping[str, bytes], sources: Sequence[str], flags: Sequence[str] = ()
) -> Compilation:
    """Start the host compiler on ``sources`` to make a shared object."""
    require(COMPILER)
    for name, text in texts.items():
        (directory / name).write_bytes(text)
    command = [COMPILER, *FLAGS, *flags, *sources, "-lm", "-o", MADE]
    kept = cache.opened()
    kept_as = None if kept is None else entry("trial", [COMPILER], command, texts)
    held = None if kept is None or kept_as is None else kept.get(kept_as)
    if held is not None:
        (directory / MADE).write_bytes(held)
        return Compilation(directory)
    process = subprocess.Popen(
        command,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    return Compilation(directory, process, kept_as)


def run(library: ctypes.CDLL, trial: Trial, poison: int) -> TrialResult:
    """Return the results of the calls of ``trial``, in memory that is filled with ``poison``."""
    offsets, end = [], GUARD_BYTES
    for block in trial.blocks:
        step = 2 * block.alignment
        place = -(-(end - block.alignment) // step) * step + block.alignment
        offsets.append(place)
        end = place + block.size_bytes + GUARD_BYTES
    widest = 2 * max((block.alignment for block in trial.blocks), default=1)
    room = np.full(end + widest, poison, np.uint8)
    skipped = -room.ctypes.data % widest
    memory = room[skipped : skipped + end]
    for block, place in zip(trial.blocks, offsets, strict=True):
        if block.held is not None:
            raw = np.ascontiguousarray(block.held).reshape(-1).view(np.uint8)
            memory[place : place + block.size_bytes] = raw
    before = memory.copy()
    base = memory.ctypes.data
    for call in trial.calls:
        function = getattr(library, call.symbol)
        function.restype = None
        passed = (None if i == NOWHERE else base + offsets[i] for i in call.blocks)
        function(*map(ctypes.c_void_p, passed))
    parts = [memory[offsets[i] : offsets[i] + trial.blocks[i].size_bytes] for i in trial.results]
    result = np.concatenate(parts) if parts else np.zeros(0, np.uint8)
    return TrialResult(result, _damage(trial, offsets, before != memory))


def _damage(trial: Trial, offsets: Sequence[int], changed: Array) -> str | None:
    """Return the bytes written outside of writable blocks as text, None without any."""
    for block, place in zip(trial.blocks, offsets, strict=True):
        if block.writable:
            changed[place : place + block.size_bytes] = False
    if not changed.any():
        return None
    first = int(np.argmax(changed))
    for index, (block, place) in enumerate(zip(trial.blocks, offsets, strict=True)):
        if place <= first < place + block.size_bytes:
            return f"writes to block {index}, which is read-only"
    before = max((i for i, o in enumerate(offsets) if o <= first), default=0)
    block, place = trial.blocks[before], offsets[before]
    behind = first - place - block.size_bytes
    return f"writes outside of its blocks, {behind + 1} bytes after the end of block {before}"
