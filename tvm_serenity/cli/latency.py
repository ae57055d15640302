"""``serenity latency``: milliseconds of a firmware project, or of an ELF, on a board."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from tvm_serenity.boards import Board, board
from tvm_serenity.cli import app, show
from tvm_serenity.cli.latency_line import line
from tvm_serenity.cli.options import Json
from tvm_serenity.cycles.board import COUNTS
from tvm_serenity.cycles.emulate import installed, require
from tvm_serenity.cycles.estimate import CycleEstimate, claim_of, cycles_of
from tvm_serenity.cycles.static import STATIC
from tvm_serenity.errors import InputError
from tvm_serenity.firmware.blocks import priced_alone, static_estimate
from tvm_serenity.firmware.latency import latency
from tvm_serenity.firmware.result import Project, load
from tvm_serenity.firmware.verify import run_qemu

MOST_PARTS = 12


@app.command("latency")
def latency_command(
    path: Annotated[
        str, typer.Argument(metavar="DIR|ELF", help="What serenity build wrote, or a program.")
    ],
    board_name: Annotated[
        str | None,
        typer.Option("--board", metavar="NAME", help="A board, or a .toml. [default: DIR's]"),
    ] = None,
    clock: Annotated[
        int | None, typer.Option("--clock", metavar="MHz", help="[default: the board's]", min=1)
    ] = None,
    function: Annotated[
        str, typer.Option("--function", metavar="NAME", help="What to measure in an ELF.")
    ] = "main",
    profile: Annotated[
        bool, typer.Option("--profile", help="Cycles of each function, too.")
    ] = False,
    json: Json = False,
) -> None:
    """Say what one run takes on a board, in milliseconds, without the board.

    The program is emulated and every instruction priced: by a table of the core and a model of the
    board's memories. The answer is a range: branches refill the pipeline in the least or the most
    cycles of the manual. "checked" boards were compared with published results (docs/latency.md),
    "modelled" ones were not. Without the extra "cycles", or a model of the board, what QEMU
    counts is priced by the core's table alone ("static"), or not at all ("counts only").

        serenity latency kws
        serenity latency app.elf --board nucleo-l4r5zi --function infer --profile
    """
    project = load(path) if Path(path).is_dir() else None
    if project is None and board_name is None:
        raise InputError("--board: an ELF does not say which board it is for")
    target = board(board_name if board_name is not None else str(_board(project)))
    if claim_of(target) == COUNTS or not installed():
        _counts(path, project, target, json)
        return
    with show.progress(f"pricing {path}"):
        if project is not None:
            found = latency(project, target, clock)
        else:
            found = cycles_of(path, target, function, clock_mhz=clock)
    if json:
        show.print_json(as_json(found))
    else:
        _print(path, found, profile)


def _board(project: Project | None) -> str:
    assert project is not None
    return str(project.metadata["board"])


def _counts(path: str, project: Project | None, target: Board, json: bool) -> None:
    """What is left without a timing: what QEMU counts, priced by the core's table alone."""
    if project is None or target.qemu is None or target.name != project.metadata["board"]:
        require()
        raise InputError(
            f"{target.name}: no [timing], and no QEMU machine to count instructions on"
        )
    cycles = None
    if priced_alone(target):
        count, cycles = static_estimate(project, target)
    else:
        found = run_qemu(project, project.reference_inputs(), traced=False).instructions
        assert found is not None
        count = found
    claim = COUNTS if cycles is None else STATIC
    data: dict[str, Any] = {"board": target.name, "claim": claim, "instructions": count}
    rows = {"class": claim, "instructions": f"{count:,} emulated by QEMU, not cycles"}
    if cycles is not None:
        mhz = target.core.clock_mhz
        low, high = (c / mhz / 1e3 for c in cycles)
        data |= {"core": target.core.name, "clock_mhz": mhz, "cycles": list(cycles)}
        data["milliseconds"] = [low, high]
        rows["cycles"] = (
            f"{cycles[0]:,} to {cycles[1]:,}: blocks by the table of {target.core.cycles}"
        )
        rows["time"] = f"{low:.3g} to {high:.3g} ms at {mhz} MHz, where no memory waits"
    if json:
        show.print_json(data)
    else:
        show.facts(f"{path} on {target.name}", rows)


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


def _print(path: str, found: CycleEstimate, profile: bool) -> None:
    total = found.cycles[1]
    rows = {
        "time": line(found),
        "cycles": f"{found.cycles[0]:,} to {found.cycles[1]:,}",
        "instructions": f"{found.instructions:,}",
        "spent on": ", ".join(f"{n} {100 * c / total:.1f} %" for n, c in found.shares.items()),
    }
    for name, (hits, misses) in found.caches.items():
        rows[f"cache {name}"] = f"{misses:,} misses of {hits + misses:,}"
    if found.microjoules is not None:
        low, high = found.microjoules
        rows["energy"] = f"{low:,.0f} to {high:,.0f} microjoules ({found.energy_source})"
    rows["compiler"] = found.compiler
    if found.flags:
        rows["flags"] = found.flags
    rows["sources"] = "; ".join(found.sources)
    show.facts(f"{path} on {found.board}, {found.function}", rows)
    if found.operators:
        _table("operator", found.operators, found)
    if profile or not found.operators:
        _table("function", found.functions[: None if profile else MOST_PARTS], found)


def _table(title: str, parts: Any, found: CycleEstimate) -> None:
    table = Table(box=None)
    for column in (title, "calls", "instructions", "ms", "%"):
        table.add_column(column, justify="left" if column == title else "right", no_wrap=True)
    for part in parts:
        low, high = found.in_milliseconds(part.cycles)
        span = f"{high:.3f}" if low == high else f"{low:.3f} to {high:.3f}"
        share = f"{100 * part.cycles[1] / found.cycles[1]:.1f}"
        calls = str(part.calls) if part.calls else ""
        table.add_row(escape(part.name), calls, f"{part.instructions:,}", span, share)
    show.console.print(table)
