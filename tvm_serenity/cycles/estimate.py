"""Estimates the cycles of a function of a linked program on a board.

cycles_of("build/firmware.elf", board("nucleo-l4r5zi"), "kws_run")
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tvm_serenity.boards import Board
from tvm_serenity.cycles.board import COUNTS, BoardTiming, board_timing, memory_rows
from tvm_serenity.cycles.core import CoreTiming, core_names, core_timing, pipeline_row
from tvm_serenity.cycles.decode import Decoder
from tvm_serenity.cycles.elf import LinkedProgram, program
from tvm_serenity.cycles.emulate import LIMIT, Machine, Setup, require
from tvm_serenity.cycles.families.record import LINK
from tvm_serenity.errors import InputError


@dataclass(frozen=True, slots=True)
class Spent:
    """The calls (0: unknown), instructions and range of cycles of one operator or function."""

    name: str
    calls: int
    instructions: int
    cycles: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class CycleEstimate:
    """The estimated cycles of one run of ``function``.

    ``cycles``: the range, with the least and the largest refill of branches. ``error_percent``: the
    largest known error of the board's model, or an assumed error. ``shares``: the parts of the
    range's upper end, in cycles: core, branches, instructions from and data in each region.
    ``operators``: in the order of their first calls. ``functions``: by their own cycles.
    """

    board: str
    core: str
    claim: str
    clock_mhz: int
    error_percent: int
    function: str
    instructions: int
    cycles: tuple[int, int]
    shares: Mapping[str, int]
    loads: Mapping[str, int]
    caches: Mapping[str, tuple[int, int]]
    operators: tuple[Spent, ...]
    functions: tuple[Spent, ...]
    compiler: str
    flags: str = ""
    microjoules: tuple[float, float] | None
    energy_source: str
    sources: tuple[str, ...]

    @property
    def milliseconds(self) -> tuple[float, float]:
        """The range ``cycles`` in milliseconds."""
        return self.in_milliseconds(self.cycles)

    def in_milliseconds(self, cycles: tuple[int, int]) -> tuple[float, float]:
        """Return the range ``cycles`` in milliseconds at the board's clock."""
        low, high = cycles
        return low / self.clock_mhz / 1e3, high / self.clock_mhz / 1e3

    @property
    def per_second(self) -> tuple[float, float]:
        """The least and most runs in a second; a run of a stream is a step, such as a token."""
        low, high = self.milliseconds
        return 1e3 / high, 1e3 / low

    @property
    def expected_ms(self) -> tuple[float, float]:
        """The range in milliseconds, widened on both sides by ``error_percent``."""
        low, high = self.milliseconds
        error = self.error_percent / 100
        return low / (1 + error), high / (1 - error) if error < 1 else float("inf")


@dataclass(frozen=True, kw_only=True)
class MeasuredCall:
    """The call to measure: ``function``, from its first call to its return.

    ``entry``: the symbol at which the program starts, "" for the program's entry. ``operators``:
    names of functions that each compute one operator. ``setup``: called with the machine when the
    function is reached.
    """

    function: str
    entry: str = ""
    operators: tuple[str, ...] = ()
    setup: Setup | None = None


def cycles_of(
    elf: str | Path, board: Board, run: MeasuredCall | str, *, clock_mhz: int | None = None
) -> CycleEstimate:
    """Emulate one run of a function of ``elf``, and return its estimated cycles on ``board``.

    Raises :class:`InputError` if the board has no timing model, the program accesses an address
    outside of the board's memory, or the function is not reached; :class:`UnsupportedError` if the
    core's table has no entry for an instruction; :class:`MissingPartError` if Unicorn or the native
    driver is not installed.
    """
    what = MeasuredCall(function=run) if isinstance(run, str) else run
    timing = board_timing(board)
    if timing is None:
        raise InputError(
            f"{board.name}: the board's file has no table [timing], so only instructions can be "
            "counted"
        )
    core = core_timing(timing.core, timing.beside)
    require()
    loaded = program(elf)
    machine, begin, end = ready(loaded, board, core, what)
    return _priced(machine, (begin, end), core, timing, what, clock_mhz or timing.clock_mhz)


def ready(
    loaded: LinkedProgram, board: Board, core: CoreTiming, what: MeasuredCall
) -> tuple[Machine, int, int]:
    """Run the program to the function; return the machine, the function's and return addresses."""
    function = _function(loaded, what.function)
    machine = Machine(loaded, board, core.model)
    machine.start()
    entry = _function(loaded, what.entry) if what.entry else loaded.entry
    if entry != function:
        machine.run_to(entry, function)
    if what.setup is not None:
        what.setup(machine)
    return machine, function, machine.register(LINK) & ~1


def _function(loaded: LinkedProgram, name: str) -> int:
    symbol = loaded.find(name)
    if symbol is None or not symbol.code:
        some = ", ".join(sorted(s.name for s in loaded.symbols if s.code)[:12])
        raise InputError(
            f"{loaded.path}: the program has no function {name!r}; choose one of {some} ..."
        )
    return symbol.address


def _priced(
    machine: Machine,
    span: tuple[int, int],
    core: CoreTiming,
    timing: BoardTiming,
    what: MeasuredCall,
    clock_mhz: int,
) -> CycleEstimate:
    driver = import_module("tvm_serenity._cycles")
    memories, caches, ports = memory_rows(timing, clock_mhz)
    loaded = machine.program
    entries = {s.address: s.name for s in loaded.symbols if s.code and s.name in what.operators}
    refills = zip(core.pipeline.refill, core.pipeline.refill_indirect, strict=True)
    follower = driver.Follower(
        pipeline_row(core.pipeline),
        memories,
        caches,
        ports,
        [list(pair) for pair in refills],
        Decoder(core, machine.code_at, frozenset(entries)),
        LIMIT,
    )
    machine.follow(follower, driver.hook, *span)
    facts = follower.result()
    if facts["at_limit"]:
        raise InputError(
            f"{loaded.path}: {what.function} did not return within {LIMIT:,} instructions"
        )
    low, high = (p["cycles"] for p in facts["pipelines"])
    energy = timing.energy
    joules = None
    if energy is not None:
        watts = energy.microamps_per_mhz * clock_mhz * energy.millivolts * 1e-9
        joules = (low / clock_mhz * watts, high / clock_mhz * watts)
    regions = [r.name for r in timing.regions] + ["elsewhere"]
    return CycleEstimate(
        board=machine.board.name,
        core=core.name,
        claim=timing.claim,
        clock_mhz=clock_mhz,
        error_percent=timing.error_percent,
        function=what.function,
        instructions=facts["instructions"],
        cycles=(low, high),
        shares=_shares(facts["pipelines"][-1], regions),
        loads=dict(zip(regions, facts["loads"], strict=False)),
        caches={
            c.name: tuple(found)
            for c, found in zip(timing.caches, facts["pipelines"][-1]["caches"], strict=True)
        },
        operators=_operators(facts["segments"], entries),
        functions=_profile(facts["rows"], loaded),
        compiler=loaded.compiler,
        microjoules=joules,
        energy_source=energy.source if energy is not None else "",
        sources=(core.source, timing.source),
    )


def _shares(pipeline: Mapping[str, Any], regions: Sequence[str]) -> dict[str, int]:
    shares = {"core": pipeline["core"], "branches": pipeline["branches"]}
    for region, fetch, data in zip(regions, pipeline["fetch"], pipeline["data"], strict=True):
        if fetch:
            shares[f"instructions from {region}"] = fetch
        if data:
            shares[f"data in {region}"] = data
    return shares


def _operators(segments: Sequence[Any], entries: Mapping[int, str]) -> tuple[Spent, ...]:
    return tuple(
        Spent(entries[entry], 1, instructions, (cycles[0], cycles[-1]))
        for entry, instructions, cycles in segments
    )


def _profile(rows: Sequence[tuple[int, int, int]], loaded: LinkedProgram) -> tuple[Spent, ...]:
    functions = loaded.functions()
    counts: dict[str, list[int]] = {}
    for pc, count, cycles in rows:
        into = counts.setdefault(functions.name_at(pc) or "?", [0, 0])
        into[0] += count
        into[1] += cycles
    ordered = sorted(counts.items(), key=lambda item: (-item[1][1], item[0]))
    return tuple(Spent(name, 0, n, (cycles, cycles)) for name, (n, cycles) in ordered)


def claim_of(board: Board) -> str:
    """Return the class of estimates for ``board``: checked, modelled or counts only."""
    timing = board_timing(board)
    if timing is None or (timing.core not in core_names() and not timing.core.endswith(".toml")):
        return COUNTS
    return timing.claim
