"""``serenity latency``: milliseconds of a firmware project, or of an ELF, on a board."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.latency_line import line
from tvm_serenity.commands.latency import InstructionCount, LatencyOptions, as_json, latency
from tvm_serenity.cycles.estimate import CycleEstimate
from tvm_serenity.options.option import Option, option
from tvm_serenity.options.output import Shown

MOST_PARTS = 12

Built = Annotated[
    str, typer.Argument(metavar="DIR|ELF", help="What serenity build wrote, or a program.")
]


@dataclass(frozen=True, kw_only=True)
class ShownLatency(Shown):
    """``profile``: cycles of each function, too."""

    profile: bool = option(False, Option(flag="--profile", help="Cycles of each function, too."))


@command("latency")
def latency_command(path: Built, options: LatencyOptions, shown: ShownLatency) -> None:
    """Say what one run takes on a board, in milliseconds, without the board.

    The program is emulated and every instruction priced: by a table of the core and a model of the
    board's memories. The answer is a range: branches refill the pipeline in the least or the most
    cycles of the manual. "checked" boards were compared with published results (docs/latency.md),
    "modelled" ones were not. Without the extra "firmware", or a model of the board, what QEMU
    counts is priced by the core's table alone ("static"), or not at all ("counts only").

        serenity latency kws
        serenity latency app.elf --board nucleo-l4r5zi --function infer --profile
    """
    found = latency(path, options, show.progress)
    if isinstance(found, InstructionCount):
        if shown.json:
            show.print_json(found.json())
        else:
            _print_count(path, found)
    elif shown.json:
        show.print_json(as_json(found))
    else:
        _print(path, found, shown.profile)


def _print_count(path: str, found: InstructionCount) -> None:
    core = found.board.core
    rows = {
        "class": found.claim,
        "instructions": f"{found.instructions:,} emulated by QEMU, not cycles",
    }
    if found.cycles is not None and found.milliseconds is not None:
        rows["cycles"] = (
            f"{found.cycles[0]:,} to {found.cycles[1]:,}: blocks by the table of {core.cycles}"
        )
        low, high = found.milliseconds
        rows["time"] = f"{low:.3g} to {high:.3g} ms at {core.clock_mhz} MHz, where no memory waits"
    show.facts(f"{path} on {found.board.name}", rows)


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
