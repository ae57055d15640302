"""``serenity latency``: the time of one run of a firmware project or an ELF on a board."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.latency_line import line
from tvm_serenity.commands.latency import (
    InstructionCount,
    LatencyOptions,
    as_json,
    duty_cycle,
    latency,
)
from tvm_serenity.cycles.estimate import CycleEstimate
from tvm_serenity.options.option import Option, option
from tvm_serenity.options.output import Shown
from tvm_serenity.system.times import range_text

MOST_PARTS = 12

Built = Annotated[
    str, typer.Argument(metavar="DIR|ELF", help="A project of serenity build, or an ELF program.")
]


@dataclass(frozen=True, kw_only=True)
class ShownLatency(Shown):
    """The options of what ``latency`` prints; ``profile``: also the cycles of each function."""

    profile: bool = option(False, Option(flag="--profile", help="Also print cycles by function."))


@command("latency")
def latency_command(path: Built, options: LatencyOptions, shown: ShownLatency) -> None:
    """Estimate the milliseconds of one run on a board, without the board.

    The program is emulated, and each instruction is priced by the core's cycle table and a model of
    the board's memories. The result is a range: a branch refills the pipeline in the minimum or the
    maximum number of cycles that the manual states. "checked" boards were compared with published
    measurements (docs/latency.md), "modelled" boards were not. Without the extra "firmware" or a
    model of the board, the instructions that QEMU counts are priced by the core's table alone
    ("static") or not at all ("counts only").

    [dim]Examples[/dim]
      serenity latency kws
      serenity latency wake --hop 32
      serenity latency app.elf --board nucleo-l4r5zi --function infer
    """
    estimate = latency(path, options, show.progress)
    duty = None if options.hop_ms is None else duty_cycle(estimate, options.hop_ms)
    if shown.json:
        data = estimate.json() if isinstance(estimate, InstructionCount) else as_json(estimate)
        show.print_json(data if duty is None else {**data, "duty_cycle": duty.json()})
        return
    share = {} if duty is None else {"duty cycle": duty.text()}
    if isinstance(estimate, InstructionCount):
        _print_count(path, estimate, share)
    else:
        _print(path, estimate, share, shown.profile)


def _print_count(path: str, count: InstructionCount, share: dict[str, str]) -> None:
    core = count.board.core
    rows = {
        "class": count.claim,
        "instructions": f"{count.instructions:,} emulated by QEMU, not cycles",
    }
    if count.cycles is not None and count.milliseconds is not None:
        rows["cycles"] = (
            f"{count.cycles[0]:,} to {count.cycles[1]:,}: basic blocks priced by the "
            f"table of {core.cycles}"
        )
        time = range_text(*count.milliseconds)
        rows["time"] = f"{time} ms at {core.clock_mhz} MHz, without wait states"
    show.facts(f"{path} on {count.board.name}", rows | share)


def _print(path: str, estimate: CycleEstimate, share: dict[str, str], profile: bool) -> None:
    total = estimate.cycles[1]
    causes = (f"{name} {100 * c / total:.1f} %" for name, c in estimate.shares.items())
    least, most = estimate.per_second
    rows = {
        "time": line(estimate),
        "rate": f"{least:,.1f} to {most:,.1f} runs a second",
        **share,
        "cycles": f"{estimate.cycles[0]:,} to {estimate.cycles[1]:,}",
        "instructions": f"{estimate.instructions:,}",
        "cycles by cause": ", ".join(causes),
    }
    for name, (hits, misses) in estimate.caches.items():
        rows[f"cache {name}"] = f"{misses:,} misses of {hits + misses:,}"
    if estimate.microjoules is not None:
        low, high = estimate.microjoules
        rows["energy"] = f"{low:,.0f} to {high:,.0f} microjoules ({estimate.energy_source})"
    rows["compiler"] = estimate.compiler
    if estimate.flags:
        rows["flags"] = estimate.flags
    rows["sources"] = "; ".join(estimate.sources)
    show.facts(f"{path} on {estimate.board}, {estimate.function}", rows)
    if estimate.operators:
        _table("operator", estimate.operators, estimate)
    if profile or not estimate.operators:
        _table("function", estimate.functions[: None if profile else MOST_PARTS], estimate)


def _table(title: str, parts: Any, estimate: CycleEstimate) -> None:
    table = Table(box=None)
    for column in (title, "calls", "instructions", "ms", "%"):
        table.add_column(column, justify="left" if column == title else "right", no_wrap=True)
    for part in parts:
        low, high = estimate.in_milliseconds(part.cycles)
        span = f"{high:.3f}" if low == high else f"{low:.3f} to {high:.3f}"
        share = f"{100 * part.cycles[1] / estimate.cycles[1]:.1f}"
        calls = str(part.calls) if part.calls else ""
        table.add_row(escape(part.name), calls, f"{part.instructions:,}", span, share)
    show.console.print(table)
