"""``latency``: estimate the time of one run of a firmware project or an ELF on a board."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_serenity.boards import Board, board
from tvm_serenity.commands.progress import Progress, silent
from tvm_serenity.cycles.board import COUNTS
from tvm_serenity.cycles.duty import DutyCycle
from tvm_serenity.cycles.emulate import installed, require
from tvm_serenity.cycles.estimate import CycleEstimate, claim_of, cycles_of
from tvm_serenity.cycles.static import STATIC
from tvm_serenity.errors import InputError
from tvm_serenity.firmware.board.blocks import priced_alone, static_estimate
from tvm_serenity.firmware.board.latency import latency as latency_of
from tvm_serenity.firmware.check.verify import run_qemu
from tvm_serenity.firmware.result import Project, load
from tvm_serenity.options.option import (
    MEGAHERTZ,
    MILLISECONDS,
    HelpGroup,
    Option,
    OptionGroup,
    option,
)


@dataclass(frozen=True, kw_only=True)
class LatencyOptions(OptionGroup):
    """The options of ``latency``.

    ``board``: by default that of the project. ``clock_mhz``: the clock of the core. ``function``:
    the measured function of an ELF. ``hop_ms``: the time between two calls.
    """

    board: str | None = option(
        None,
        Option(
            flag="--board",
            help="Board name or .toml file. [default: DIR's board]",
            group=HelpGroup.SPEED,
            metavar="NAME",
        ),
    )
    clock_mhz: int | None = option(
        None,
        Option(
            flag="--clock",
            help="Clock of the core. [default: the board's]",
            group=HelpGroup.SPEED,
            unit=MEGAHERTZ,
            least=1,
        ),
    )
    function: str = option(
        "main",
        Option(
            flag="--function",
            help="Measured function of an ELF.",
            group=HelpGroup.MODEL,
            metavar="NAME",
        ),
    )
    hop_ms: float | None = option(
        None,
        Option(
            flag="--hop",
            help="Time between two calls of a stream; prints the share of it that a call takes.",
            group=HelpGroup.SPEED,
            unit=MILLISECONDS,
            above=0,
        ),
    )


@dataclass(frozen=True)
class InstructionCount:
    """The instructions that QEMU counts, priced by the core's cycle table if there is one.

    This is the result for a board without a timing model. ``cycles``: minimum and maximum; None if
    the core has no table.
    """

    board: Board
    instructions: int
    cycles: tuple[int, int] | None

    @property
    def claim(self) -> str:
        """The class of the figures: "static" or "counts only"."""
        return COUNTS if self.cycles is None else STATIC

    @property
    def milliseconds(self) -> tuple[float, float] | None:
        """Minimum and maximum time without wait states; None without a cycle table."""
        if self.cycles is None:
            return None
        low, high = (count / self.board.core.clock_mhz / 1e3 for count in self.cycles)
        return low, high

    def json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        name = self.board.name
        data = {"board": name, "claim": self.claim, "instructions": self.instructions}
        if self.cycles is None or self.milliseconds is None:
            return data
        core = self.board.core
        priced = {"core": core.name, "clock_mhz": core.clock_mhz, "cycles": list(self.cycles)}
        return {**data, **priced, "milliseconds": list(self.milliseconds)}


def latency(
    path: str, options: LatencyOptions | None = None, tell: Progress = silent
) -> CycleEstimate | InstructionCount:
    """Return the estimated time of one run of a project or an ELF on a board.

    Raises :class:`InputError` for a hop if the board has no figures for a time.
    """
    options = options or LatencyOptions()
    found = _estimate(path, options, tell)
    if options.hop_ms is not None and found.milliseconds is None:
        raise InputError(
            "--hop: no share of the time is known: the core of this board has no cycle table; "
            "choose another board"
        )
    return found


def duty_cycle(estimate: CycleEstimate | InstructionCount, hop_ms: float) -> DutyCycle:
    """Return the share that an estimated call takes of ``hop_ms``, the time between two calls.

    Raises :class:`InputError` if the time of the call is unknown.
    """
    times = estimate.milliseconds
    if times is None:
        raise InputError("the duty cycle needs a time, but instructions alone were counted")
    expected = estimate.expected_ms if isinstance(estimate, CycleEstimate) else times
    return DutyCycle(hop_ms, times, expected)


def _estimate(
    path: str, options: LatencyOptions, tell: Progress
) -> CycleEstimate | InstructionCount:
    project = load(path) if Path(path).is_dir() else None
    if project is None and not Path(path).is_file():
        raise InputError(f"{path}: no such project or ELF; serenity build writes a project")
    name = options.board
    if name is None:
        if project is None:
            raise InputError(f"{path}: an ELF does not name its board; give --board NAME")
        name = str(project.metadata["board"])
    target = board(name)
    if claim_of(target) == COUNTS or not installed():
        return _counted(project, target)
    with tell(f"pricing {path}"):
        if project is not None:
            return latency_of(project, target, options.clock_mhz)
        return cycles_of(path, target, options.function, clock_mhz=options.clock_mhz)


def _counted(project: Project | None, target: Board) -> InstructionCount:
    """Return the count of instructions for a board without a timing model."""
    if project is None or target.qemu is None or target.name != project.metadata["board"]:
        require()
        raise InputError(
            f"{target.name}: no estimate: its file has no [timing] and QEMU cannot count the "
            "instructions (no machine, or a project for another board)"
        )
    if priced_alone(target):
        return InstructionCount(target, *static_estimate(project, target))
    found = run_qemu(project, project.reference_inputs(), traced=False).instructions
    assert found is not None
    return InstructionCount(target, found, None)


def as_json(estimate: CycleEstimate) -> dict[str, Any]:
    """Return ``estimate`` as ``--json`` prints it: times in ms, energy in microjoules."""
    return {
        "board": estimate.board,
        "core": estimate.core,
        "claim": estimate.claim,
        "clock_mhz": estimate.clock_mhz,
        "function": estimate.function,
        "instructions": estimate.instructions,
        "cycles": list(estimate.cycles),
        "milliseconds": list(estimate.milliseconds),
        "error_percent": estimate.error_percent,
        "expected_ms": list(estimate.expected_ms),
        "per_second": list(estimate.per_second),
        "shares": dict(estimate.shares),
        "loads": dict(estimate.loads),
        "caches": {name: {"hits": h, "misses": m} for name, (h, m) in estimate.caches.items()},
        "operators": [_part(p, estimate) for p in estimate.operators],
        "functions": [_part(p, estimate) for p in estimate.functions],
        "compiler": estimate.compiler,
        "flags": estimate.flags,
        "microjoules": None if estimate.microjoules is None else list(estimate.microjoules),
        "sources": list(estimate.sources),
    }


def _part(part: Any, estimate: CycleEstimate) -> dict[str, Any]:
    return {
        "name": part.name,
        "calls": part.calls or None,
        "instructions": part.instructions,
        "milliseconds": list(estimate.in_milliseconds(part.cycles)),
    }
