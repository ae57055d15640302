"""Boards: the core and memory of a microcontroller, from ``targets/*.toml`` or a user's file.

    board("nucleo-f767zi"), board("stm32f767"), board("my-board.toml"), board("cortex-m4:256K:1M")

Each file names the source of its numbers; numbers without a source are listed in ``unsourced``.
"""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

from tvm_serenity.architectures import architecture
from tvm_serenity.cores import INSTRUCTIONS, CoreIsa, core_model
from tvm_serenity.errors import InputError, ParseError
from tvm_serenity.system.files import read_text
from tvm_serenity.system.sizes import size_bytes

KINDS = ("flash", "sram", "dtcm", "itcm", "ccm", "psram")
"""Kinds of memory: flash holds code and constants, the others data; psram is external and slow."""

MAX_FILE_BYTES = 2**20
ANY_BOARD = "mps2-an386"
"""A board with ample memory in QEMU: the default, and the memory addresses of unknown chips."""
LARGEST_BYTES = 2**28
"""The limit on flash, and on RAM, of a board that is given by its sizes."""


@dataclass(frozen=True, slots=True)
class MemoryRegion:
    """Contiguous memory of one ``kind`` at ``address``."""

    name: str
    kind: str
    address: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Core:
    """The processor of a board, by its core file (``tvm_serenity.cores``).

    ``instructions``: the instruction sets that it executes. ``prices`` and ``cycles``: the cores
    whose kernel prices and timing apply, "" for none. Tensors are aligned to ``alignment_bytes``.
    """

    name: str
    instructions: tuple[str, ...]
    clock_mhz: int
    alignment_bytes: int
    prices: str = ""
    cycles: str = ""

    def has(self, instructions: str) -> bool:
        """Return whether it executes an instruction set of ``cores.INSTRUCTIONS``."""
        return instructions in self.instructions


@dataclass(frozen=True, kw_only=True)
class Board:
    """A board: core, memory, flags of compilers, and QEMU's machine if there is one.

    ``architecture``: the name of its core's family, whose compiler ``gcc`` are flags of.
    ``libraries`` and ``llvm_abi``: as in ``cores.CoreIsa``.
    ``aliases``: the names of its chip, and other names that users write for the board. ``timing``
    is the table of that name in ``file`` (``tvm_serenity.cycles.board``).
    """

    name: str
    title: str
    source: str
    core: Core
    regions: tuple[MemoryRegion, ...]
    architecture: str
    gcc: str
    llvm_triple: str
    llvm_cpu: str
    libraries: str = ""
    llvm_attributes: tuple[str, ...] = ()
    llvm_abi: str = ""
    qemu: str | None = None
    unsourced: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    file: str = ""
    timing: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    @property
    def compiler(self) -> str:
        """The C compiler; "" if only the user has one."""
        known = architecture(self.architecture).known_toolchain
        return "" if known is None else known.compiler

    @property
    def ram_bytes(self) -> int:
        """Bytes of on-chip memory for data."""
        return sum(r.size_bytes for r in self.regions if r.kind not in ("flash", "itcm", "psram"))

    @property
    def flash_bytes(self) -> int:
        """Bytes for code and constants."""
        return sum(r.size_bytes for r in self.regions if r.kind == "flash")


def names() -> tuple[str, ...]:
    """Return the names of the boards in the package, sorted."""
    files = resources.files("tvm_serenity.targets").iterdir()
    return tuple(sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml")))


@cache
def aliases() -> Mapping[str, str]:
    """Return the board name of each alias."""
    return {alias: name for name in names() for alias in _known(name).aliases}


def board(spec: str) -> Board:
    """Return the board that ``spec`` names.

    ``spec`` is one of ``names()`` or ``aliases()``, in any case, the path of a TOML file, or
    "CORE:RAM:FLASH" for any chip with a known core (:func:`board_of_cpu`).

    Raises :class:`InputError`, which names the file and its error, or the boards with the most
    similar names.
    """
    if spec.endswith(".toml"):
        path = Path(spec)
        try:
            if path.stat().st_size > MAX_FILE_BYTES:
                raise InputError(f"{spec}: the file is larger than {MAX_FILE_BYTES} bytes")
            return _parse(path.stem, spec, read_text(path))
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{spec}: cannot be read: {reason}") from None
    if spec.count(":") == 2:
        cpu, ram, flash = spec.split(":")
        return board_of_cpu(cpu, size_bytes(ram, 1), size_bytes(flash, 1))
    wanted = spec.lower().replace("_", "-")
    name = wanted if wanted in names() else aliases().get(wanted)
    if name is None:
        raise InputError(_unknown(spec, wanted))
    return _known(name)


def _known(name: str) -> Board:
    file = resources.files("tvm_serenity.targets") / f"{name}.toml"
    return _parse(name, file.name, file.read_text(encoding="utf-8"))


def _unknown(spec: str, wanted: str) -> str:
    """Return the message for a name that no board has."""
    near = difflib.get_close_matches(wanted, [*names(), *aliases()], n=3, cutoff=0.6)
    meant = f"did you mean {' or '.join(near)}? " if near else ""
    return (
        f"unknown board {spec!r}: {meant}`serenity boards` lists all; a .toml file describes "
        "another one, and CORE:RAM:FLASH (cortex-m4:256K:1M) a chip without a file"
    )


def board_of_cpu(cpu: str, ram_bytes: int, flash_bytes: int) -> Board:
    """Return a board with the core ``cpu`` and the given RAM and flash, in bytes.

    ``cpu`` is a core of ``cores.core_files()`` or the path of a core's ``.toml`` file. Memory
    addresses, clock and alignment are those of the QEMU machine that runs the core, or of
    ``ANY_BOARD`` without one. Wait states are unknown, so no milliseconds are estimated. A board
    with more memory than its machine is not emulated.

    Raises :class:`InputError` if the core is unknown, or a size is not positive or above
    ``LARGEST_BYTES``.
    """
    model = core_model(cpu)
    machine = next((b for b in map(_known, names()) if b.qemu and b.qemu == model.qemu), None)
    like = machine or _known(ANY_BOARD)
    variant = model.variants[0]
    flash = next(r for r in like.regions if r.kind == "flash")
    internal = (r for r in like.regions if r.kind in ("sram", "dtcm"))
    ram = max(internal, key=lambda r: r.size_bytes)
    regions, emulated = [], machine is not None
    for name, region, size in (("flash", flash, flash_bytes), ("ram", ram, ram_bytes)):
        if not 0 < size <= LARGEST_BYTES:
            raise InputError(
                f"{cpu} with {size:,} bytes of {name}: write a size from 1 to {LARGEST_BYTES:,} "
                "bytes"
            )
        emulated &= size <= region.size_bytes
        regions.append(replace(region, name=name, size_bytes=size))
    return Board(
        name=f"{cpu}:{ram_bytes}:{flash_bytes}",
        title=f"{model.title}, {ram_bytes:,} bytes of RAM, {flash_bytes:,} of flash",
        source=f"sizes as given; addresses and clock of {like.name}",
        core=Core(
            model.name,
            variant.instructions,
            like.core.clock_mhz,
            like.core.alignment_bytes,
            variant.prices,
            model.cycles,
        ),
        regions=tuple(regions),
        architecture=model.architecture,
        gcc=variant.gcc,
        llvm_triple=variant.llvm_triple,
        llvm_cpu=variant.llvm_cpu,
        libraries=variant.libraries,
        llvm_attributes=variant.llvm_attributes,
        llvm_abi=variant.llvm_abi,
        qemu=like.qemu if emulated else None,
        file=f"{cpu}:{ram_bytes}:{flash_bytes}",
    )


def _parse(name: str, where: str, text: str) -> Board:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ParseError(f"{where}: {error}") from None
    reader = _Reader(where)
    core, isa, family = _core(reader, data)
    board = Board(
        name=name,
        title=reader.text(data, "title"),
        source=reader.text(data, "source"),
        core=core,
        regions=tuple(reader.region(r) for r in reader.get(data, "regions", list)),
        architecture=family,
        gcc=isa.gcc,
        llvm_triple=isa.llvm_triple,
        llvm_cpu=isa.llvm_cpu,
        libraries=isa.libraries,
        llvm_attributes=isa.llvm_attributes,
        llvm_abi=isa.llvm_abi,
        qemu=reader.text(data, "qemu") if "qemu" in data else None,
        unsourced=tuple(map(str, data.get("unsourced", ()))),
        aliases=tuple(str(a).lower() for a in data.get("aliases", ())),
        file=where,
        timing=reader.table(data, "timing") if "timing" in data else None,
    )
    _check(where, board)
    return board


def _core(reader: "_Reader", data: Mapping[str, Any]) -> tuple[Core, CoreIsa, str]:
    """Return the core of a board, its compiler flags, and its architecture.

    A board may list instruction sets that its core lacks (``dsp = false``), and flags of its own.
    """
    table = reader.table(data, "core")
    path = Path(reader.where)
    model = core_model(reader.text(table, "name"), path.parent if path.is_file() else None)
    full, given = model.variants[0], {i for i in INSTRUCTIONS if i in table}
    said = {i: bool(reader.get(table, i, bool)) for i in given}
    has = tuple(i for i in INSTRUCTIONS if said.get(i, i in full.instructions))
    own = reader.table(data, "toolchain") if "toolchain" in data else {}
    isa = model.variant(has)
    if isa is None and not {"gcc", "llvm_triple"} <= set(own):
        kinds = "; ".join(", ".join(v.instructions) for v in model.variants)
        raise ParseError(
            f"{reader.where}: {model.name} with {', '.join(has)}: no compiler flags are known for "
            f"these instruction sets, only for: {kinds}; write 'gcc' and 'llvm_triple' in "
            "[toolchain]"
        )
    isa = isa or full
    isa = replace(
        isa,
        gcc=reader.text(own, "gcc") if "gcc" in own else isa.gcc,
        llvm_triple=reader.text(own, "llvm_triple") if "llvm_triple" in own else isa.llvm_triple,
    )
    core = Core(
        model.name,
        has,
        reader.number(table, "clock_mhz", 1),
        reader.number(table, "alignment_bytes", 1),
        isa.prices,
        model.cycles,
    )
    return core, isa, model.architecture


@dataclass(frozen=True)
class _Reader:
    where: str

    def get(self, table: Mapping[str, Any], key: str, kind: type) -> Any:
        value = table.get(key)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ParseError(f"{self.where}: {key!r} is missing or not of type {kind.__name__}")
        return value

    def table(self, data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        value: Mapping[str, Any] = self.get(data, key, dict)
        return value

    def text(self, table: Mapping[str, Any], key: str) -> str:
        return str(self.get(table, key, str))

    def number(self, table: Mapping[str, Any], key: str, least: int) -> int:
        value = int(self.get(table, key, int))
        if not least <= value < 2**32:
            raise ParseError(f"{self.where}: {key!r} is {value}, not in {least}..{2**32 - 1}")
        return value

    def region(self, table: object) -> MemoryRegion:
        if not isinstance(table, dict):
            raise ParseError(f"{self.where}: 'regions' must be a list of tables")
        kind = self.text(table, "kind")
        if kind not in KINDS:
            raise ParseError(
                f"{self.where}: unknown kind {kind!r} of a region; there are {', '.join(KINDS)}"
            )
        return MemoryRegion(
            self.text(table, "name"),
            kind,
            self.number(table, "address", 0),
            self.number(table, "size_bytes", 1),
        )


def _check(where: str, board: Board) -> None:
    if len({r.name for r in board.regions}) != len(board.regions):
        raise ParseError(f"{where}: two regions have the same name; rename one")
    by_address = sorted(board.regions, key=lambda r: r.address)
    for left, right in pairwise(by_address):
        if left.address + left.size_bytes > right.address:
            raise ParseError(f"{where}: regions {left.name!r} and {right.name!r} overlap")
    if board.flash_bytes == 0 or board.ram_bytes == 0:
        raise ParseError(f"{where}: the board needs a region of flash and one of RAM; add it")
