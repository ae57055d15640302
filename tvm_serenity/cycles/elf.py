"""Reads linked programs: 32-bit little-endian ELF files of the known architectures."""

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tvm_serenity.architectures import ARCHITECTURES, TOOLCHAINS
from tvm_serenity.errors import InputError

HEADER, PROGRAM, SECTION, SYMBOL = "<16sHHIIIIIHHHHHH", "<8I", "<10I", "<IIIBBH"
EXECUTABLE, LOADED, SYMBOLS = 2, 1, 2
MAX_FILE_BYTES = 2**28


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol; ``code`` is True for functions, and ``size_bytes`` may be 0."""

    name: str
    address: int
    size_bytes: int
    code: bool


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment, which is loaded at ``load_address`` and used at ``address``."""

    address: int
    load_address: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Section:
    """A section: its address, and its size in memory."""

    name: str
    address: int
    size_bytes: int


@dataclass(frozen=True)
class LinkedProgram:
    """A linked program: entry, segments, sections, symbols, and compiler."""

    path: str
    entry: int
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    compiler: str

    def find(self, name: str) -> Symbol | None:
        """Return the symbol ``name``, or None."""
        return next((s for s in self.symbols if s.name == name), None)

    def functions(self) -> "FunctionRanges":
        """Return the map from addresses to functions."""
        by_address = {s.address: s for s in self.symbols if s.code}
        return FunctionRanges(tuple(by_address[a] for a in sorted(by_address)))


@dataclass(frozen=True)
class FunctionRanges:
    """A map from addresses to functions."""

    symbols: tuple[Symbol, ...]

    def name_at(self, address: int) -> str:
        """Return the name of the last function that begins at or before ``address``, or ""."""
        at = bisect_right(self.symbols, address, key=lambda s: s.address)
        return self.symbols[at - 1].name if at else ""


def program(path: str | Path) -> LinkedProgram:
    """Read ``path`` and return its program.

    Raises :class:`InputError` if the file is not a linked program of a known architecture.
    """
    try:
        if Path(path).stat().st_size > MAX_FILE_BYTES:
            raise InputError(f"{path}: the file is larger than {MAX_FILE_BYTES} bytes")
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: the file cannot be read: {error.strerror}") from None
    try:
        return _read(str(path), data)
    except (struct.error, IndexError, UnicodeDecodeError):
        raise InputError(f"{path}: the ELF file is damaged") from None


def _read(path: str, data: bytes) -> LinkedProgram:
    if data[:4] != b"\x7fELF" or len(data) < 52:
        raise InputError(f"{path}: the file is not an ELF file")
    head = struct.unpack_from(HEADER, data)
    ident, kind, machine, _, entry, programs, sections = head[:7]
    known = {one.elf_machine: ARCHITECTURES[name].title for name, one in TOOLCHAINS.items()}
    if ident[4] != 1 or ident[5] != 1 or machine not in known or kind != EXECUTABLE:
        raise InputError(
            f"{path}: the file is not a linked 32-bit program for {' or '.join(known.values())}"
        )
    segments = []
    for i in range(head[10]):
        kind, offset, virtual, physical, size, *_ = struct.unpack_from(
            PROGRAM, data, programs + i * head[9]
        )
        if kind == LOADED and size:
            if offset + size > len(data):
                raise InputError(f"{path}: the ELF file is damaged")
            segments.append(Segment(virtual, physical, data[offset : offset + size]))
    if not segments:
        raise InputError(f"{path}: the program has no segments to load")
    table = [struct.unpack_from(SECTION, data, sections + i * head[11]) for i in range(head[12])]
    names = table[head[13]][4] if table else 0
    placed = tuple(Section(_text(data, names + s[0]), s[3], s[5]) for s in table if s[1])
    symbols = tuple(_symbols(data, table))
    return LinkedProgram(
        path, entry & ~1, tuple(segments), placed, symbols, _compiler(data, table, names)
    )


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


def _symbols(data: bytes, sections: list[tuple[int, ...]]) -> Iterator[Symbol]:
    for section in sections:
        if section[1] != SYMBOLS:
            continue
        offset, size, names = section[4], section[5], sections[section[6]][4]
        for at in range(offset, offset + size, struct.calcsize(SYMBOL)):
            name, value, length, info, _, _ = struct.unpack_from(SYMBOL, data, at)
            text = _text(data, names + name)
            if text and not text.startswith("$"):
                code = info & 15 == 2
                yield Symbol(text, value & ~1 if code else value, length, code)


def _compiler(data: bytes, sections: list[tuple[int, ...]], names: int) -> str:
    for section in sections:
        if section[1] == 1 and _text(data, names + section[0]) == ".comment":
            parts = data[section[4] : section[4] + section[5]].split(b"\0")
            return "; ".join(sorted({p.decode(errors="replace") for p in parts if p}))
    return "unknown"
