"""``latency``: milliseconds of a firmware project, or of an ELF, on a board."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_serenity.boards import Board, board
from tvm_serenity.commands.progress import Progress, silent
from tvm_serenity.cycles.board import COUNTS
from tvm_serenity.cycles.emulate import installed, require
from tvm_serenity.cycles.estimate import CycleEstimate, claim_of, cycles_of
from tvm_serenity.cycles.static import STATIC
from tvm_serenity.errors import InputError
from tvm_serenity.firmware.board.blocks import priced_alone, static_estimate
from tvm_serenity.firmware.board.latency import latency as latency_of
from tvm_serenity.firmware.check.verify import run_qemu
from tvm_serenity.firmware.result import Project, load
from tvm_serenity.options.option import MEGAHERTZ, HelpGroup, Option, OptionGroup, option


@dataclass(frozen=True, kw_only=True)
class LatencyOptions(OptionGroup):
    """``board``: by default a project's. ``clock_mhz``: of it. ``function``: measured in an ELF."""

    board: str | None = option(
        None,
        Option(
            flag="--board",
            help="A board, or a .toml. [default: DIR's]",
            group=HelpGroup.SPEED,
            metavar="NAME",
        ),
    )
    clock_mhz: int | None = option(
        None,
        Option(
            flag="--clock",
            help="[default: the board's]",
            group=HelpGroup.SPEED,
            unit=MEGAHERTZ,
            least=1,
        ),
    )
    function: str = option(
        "main",
        Option(
            flag="--function",
            help="What to measure in an ELF.",
            group=HelpGroup.MODEL,
            metavar="NAME",
        ),
    )


@dataclass(frozen=True)
class InstructionCount:
    """What is known without a timing: what QEMU counts, priced by the core's table if there is one.

    ``cycles``: the least and the most; None where the core has no table.
    """

    board: Board
    instructions: int
    cycles: tuple[int, int] | None

    @property
    def claim(self) -> str:
        """What the figures claim."""
        return COUNTS if self.cycles is None else STATIC

    @property
    def milliseconds(self) -> tuple[float, float] | None:
        """The least and the most time, where no memory waits."""
        if self.cycles is None:
            return None
        low, high = (count / self.board.core.clock_mhz / 1e3 for count in self.cycles)
        return low, high

    def json(self) -> dict[str, Any]:
        """Return what JSON says of it."""
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
    """Return what one run of a project or an ELF takes on a board, without the board."""
    options = options or LatencyOptions()
    project = load(path) if Path(path).is_dir() else None
    name = options.board
    if name is None:
        if project is None:
            raise InputError("--board: an ELF does not say which board it is for")
        name = str(project.metadata["board"])
    target = board(name)
    if claim_of(target) == COUNTS or not installed():
        return _counted(project, target)
    with tell(f"pricing {path}"):
        if project is not None:
            return latency_of(project, target, options.clock_mhz)
        return cycles_of(path, target, options.function, clock_mhz=options.clock_mhz)


def _counted(project: Project | None, target: Board) -> InstructionCount:
    """What is left without a timing."""
    if project is None or target.qemu is None or target.name != project.metadata["board"]:
        require()
        raise InputError(
            f"{target.name}: no [timing], and no QEMU machine to count instructions on"
        )
    if priced_alone(target):
        return InstructionCount(target, *static_estimate(project, target))
    found = run_qemu(project, project.reference_inputs(), traced=False).instructions
    assert found is not None
    return InstructionCount(target, found, None)


def as_json(found: CycleEstimate) -> dict[str, Any]:
    """Return an estimate as ``--json`` prints it; times in milliseconds, energy in microjoules."""
    return {
        "board": found.board,
        "core": found.core,
        "claim": found.claim,
        "clock_mhz": found.clock_mhz,
        "function": found.function,
        "instructions": found.instructions,
        "cycles": list(found.cycles),
        "milliseconds": list(found.milliseconds),
        "error_percent": found.error_percent,
        "expected_ms": list(found.expected_ms),
        "shares": dict(found.shares),
        "loads": dict(found.loads),
        "caches": {name: {"hits": h, "misses": m} for name, (h, m) in found.caches.items()},
        "operators": [_part(p, found) for p in found.operators],
        "functions": [_part(p, found) for p in found.functions],
        "compiler": found.compiler,
        "flags": found.flags,
        "microjoules": None if found.microjoules is None else list(found.microjoules),
        "sources": list(found.sources),
    }


def _part(part: Any, found: CycleEstimate) -> dict[str, Any]:
    return {
        "name": part.name,
        "calls": part.calls or None,
        "instructions": part.instructions,
        "milliseconds": list(found.in_milliseconds(part.cycles)),
    }
