"""Reads the timing of a board's memories, the table ``[timing]`` of its TOML file.

The table holds wait states per clock, read widths, prefetch, caches and shared ports, the class of
the estimate (see ``CHECKED``), and the current of the chip.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tvm_serenity.boards import Board, MemoryRegion
from tvm_serenity.errors import InputError
from tvm_serenity.system.toml_table import TomlTable

CHECKED, MODELLED, COUNTS = "checked", "modelled", "counts only"
"""The classes of an estimate (``claim``).

*checked*: the model has been compared with published results (docs/latency.md). *modelled*: there
is a model, but no published results. *counts only*: there is no table of the core or the board.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheModel:
    """A set-associative cache with ``ways`` lines per set; a miss loads ``sector_bytes``."""

    name: str
    size_bytes: int
    line_bytes: int
    sector_bytes: int
    ways: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryModel:
    """The timing of one memory region of the board.

    ``waits``: pairs of a maximum clock in MHz and the wait states up to it. A read of
    ``read_bytes`` takes 1 + wait states cycles of the memory's clock (the core's clock divided by
    ``clock_divider``) plus ``latency_cycles`` of the core's clock. ``instruction_cache`` and
    ``data_cache``: names of caches, "" for none. ``port``: the name of the bus that regions share,
    "" for none.
    """

    region: str
    read_bytes: int
    waits: tuple[tuple[int, int], ...]
    clock_divider: int
    latency_cycles: int
    burst_cycles: int
    prefetch: bool
    instruction_cache: str
    data_cache: str
    port: str
    store_fills: bool
    source: str

    def wait_states(self, clock_mhz: int) -> int:
        """Return the wait states at ``clock_mhz``; raise :class:`InputError` if it is too high."""
        for most, waits in self.waits:
            if clock_mhz <= most:
                return waits
        raise InputError(
            f"region {self.region!r} has no wait states for {clock_mhz} MHz; use a clock of "
            f"{self.waits[-1][0]} MHz or less"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyModel:
    """The current of the chip from its data sheet, in microamperes per MHz, at a supply voltage."""

    microamps_per_mhz: int
    millivolts: int
    source: str


@dataclass(frozen=True, kw_only=True)
class BoardTiming:
    """The timing model of a board.

    ``error_percent``: for a *checked* board, the largest error of predictions against published
    results; for a *modelled* board, an assumed error.
    """

    claim: str
    core: str
    beside: Path | None
    source: str
    error_percent: int
    clock_mhz: int
    regions: tuple[MemoryRegion, ...]
    memories: tuple[MemoryModel, ...]
    caches: tuple[CacheModel, ...]
    energy: EnergyModel | None


def board_timing(board: Board) -> BoardTiming | None:
    """Return the timing of a board, or None if its file has no table ``[timing]``.

    Raises :class:`ParseError`, which names the file and the invalid, unknown or missing key.
    """
    if board.timing is None:
        return None
    top = TomlTable(board.file, "timing", board.timing)
    top.only(
        "class", "core", "source", "error_percent", "clock_mhz", "memories", "caches", "energy"
    )
    caches = tuple(_cache(t) for t in top.tables("caches"))
    memories = tuple(_memory(t, board, caches) for t in top.tables("memories"))
    told = {m.region for m in memories}
    if len(told) != len(memories):
        raise top.error("'memories' has two entries for one region; give one entry per region")
    for region in board.regions:
        if region.kind in ("flash", "psram") and region.name not in told:
            raise top.error(
                f"'memories' has no entry for region {region.name!r}; each region of kind "
                f"{region.kind!r} needs one"
            )
    path = Path(board.file)
    return BoardTiming(
        claim=top.choice("class", (CHECKED, MODELLED)),
        core=top.text("core", board.core.cycles),
        beside=path.parent if path.is_file() else None,
        source=top.text("source"),
        error_percent=top.number("error_percent", least=1, most=100),
        clock_mhz=top.number("clock_mhz", board.core.clock_mhz, 1, 10_000),
        regions=board.regions,
        memories=memories,
        caches=caches,
        energy=_energy(top.table("energy")),
    )


def _cache(table: TomlTable) -> CacheModel:
    table.only("name", "size_bytes", "line_bytes", "sector_bytes", "ways", "source")
    line = table.number("line_bytes", least=4, most=256)
    cache = CacheModel(
        name=table.text("name"),
        size_bytes=table.number("size_bytes", least=line),
        line_bytes=line,
        sector_bytes=table.number("sector_bytes", line, 4, line),
        ways=table.number("ways", least=1, most=4096),
        source=table.text("source"),
    )
    if cache.size_bytes % (line * cache.ways) or line % cache.sector_bytes:
        raise table.error(
            f"cache {cache.name!r}: its size must be a multiple of ways x line size, and its line "
            "size a multiple of the sector size"
        )
    if line // cache.sector_bytes > 64:
        raise table.error(f"cache {cache.name!r}: a line may have at most 64 sectors")
    return cache


def _memory(table: TomlTable, board: Board, caches: Sequence[CacheModel]) -> MemoryModel:
    table.only(*("wait_states" if k == "waits" else k for k in MemoryModel.__dataclass_fields__))
    region = table.choice("region", [r.name for r in board.regions])
    names = [c.name for c in caches]
    held = {}
    for key in ("instruction_cache", "data_cache"):
        held[key] = table.choice(key, names) if key in table.data else ""
    return MemoryModel(
        region=region,
        read_bytes=table.number("read_bytes", 4, 1, 256),
        waits=_waits(table),
        clock_divider=table.number("clock_divider", 1, 1, 16),
        latency_cycles=table.number("latency_cycles", 0, most=1000),
        burst_cycles=table.number("burst_cycles", 1, 1, 1000),
        prefetch=table.flag("prefetch", False),
        instruction_cache=held["instruction_cache"],
        data_cache=held["data_cache"],
        port=table.text("port", ""),
        store_fills=table.flag("store_fills", False),
        source=table.text("source"),
    )


def _waits(table: TomlTable) -> tuple[tuple[int, int], ...]:
    steps = []
    for step in table.get("wait_states", list):
        if (
            not isinstance(step, list)
            or len(step) != 2
            or any(isinstance(v, bool) or not isinstance(v, int) or v < 0 for v in step)
        ):
            raise table.error("'wait_states' must be a list of [maximum MHz, wait states]")
        steps.append((step[0], step[1]))
    if not steps or sorted(steps) != steps:
        raise table.error("'wait_states' must not be empty, and its clocks must ascend")
    return tuple(steps)


def _energy(table: TomlTable | None) -> EnergyModel | None:
    if table is None:
        return None
    table.only("microamps_per_mhz", "millivolts", "source")
    return EnergyModel(
        microamps_per_mhz=table.number("microamps_per_mhz", least=1),
        millivolts=table.number("millivolts", least=1),
        source=table.text("source"),
    )


def memory_rows(
    timing: BoardTiming, clock_mhz: int
) -> tuple[list[list[int]], list[list[int]], int]:
    """Return the rows of regions and caches for the native driver, and the number of ports.

    A region without a model has no wait states. A region without wait states at ``clock_mhz`` has
    no caches.
    """
    caches = [
        [c.line_bytes, c.sector_bytes, c.size_bytes // (c.line_bytes * c.ways), c.ways]
        for c in timing.caches
    ]
    index = {c.name: i for i, c in enumerate(timing.caches)} | {"": -1}
    ports = sorted({m.port for m in timing.memories if m.port})
    port = {name: i for i, name in enumerate(ports)} | {"": -1}
    models = {m.region: m for m in timing.memories}
    rows = []
    for region in timing.regions:
        first, last = region.address, region.address + region.size_bytes - 1
        model = models.get(region.name)
        waits = 0 if model is None else model.wait_states(clock_mhz)
        cycles = 1 if model is None else (1 + waits) * model.clock_divider + model.latency_cycles
        if model is None or cycles == 1:
            rows.append([first, last, 4, 1, 1, 0, -1, -1, -1, 0])
            continue
        held = index[model.instruction_cache], index[model.data_cache]
        rows.append(
            [
                *(first, last, model.read_bytes, cycles, model.burst_cycles, int(model.prefetch)),
                *(*held, port[model.port], int(model.store_fills)),
            ]
        )
    return rows, caches, len(ports)
