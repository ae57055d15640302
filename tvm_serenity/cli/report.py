"""``serenity report``: everything about a model's memory on one page that needs no network."""

import sys
import tempfile
import webbrowser
from dataclasses import dataclass, replace
from pathlib import Path

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.options import Model
from tvm_serenity.commands.report import ReportOptions, report
from tvm_serenity.errors import InputError
from tvm_serenity.options.option import Option, option
from tvm_serenity.options.output import Shown


@dataclass(frozen=True, kw_only=True)
class ShownReport(Shown):
    """``open``: show the page in the browser."""

    open: bool = option(
        False,
        Option(flag="--open", help="Show it in the browser; without -o a temporary one."),
    )


@command("report")
def report_command(model: Model, options: ReportOptions, shown: ShownReport) -> None:
    """Write one HTML page about MODEL's memory: no network needed, all parts interactive.

    The network with its best order, live memory step by step for the given and the best order
    (of more than 5,000 operators, around the peaks), the arena, rewrites, off-chip traffic,
    boards, and what is proved; with --firmware milliseconds by operator. Each number is the one
    that schedule, rewrite, explain, offchip and latency print with --json.

    [dim]Examples[/dim]
      serenity report model.tflite --open
      serenity report model.tflite -o report.html
      serenity report zoo:swiftnet --board nucleo-f767zi -o report.html
    """
    if options.output is None and not shown.json and not shown.open:
        raise InputError("name the page: -o report.html (or --open, or print its numbers: --json)")
    if options.output is None and shown.open:
        folder = tempfile.mkdtemp(prefix="serenity-report-")
        options = replace(options, output=str(Path(folder) / "report.html"))
    show.warn_without_core()
    data = report(model, options, show.progress)
    output = options.output
    if shown.open and output is not None and not webbrowser.open(Path(output).resolve().as_uri()):
        print(f"serenity: no browser was found; the page is {output}", file=sys.stderr)
    if shown.json:
        show.print_json(data)
    else:
        show.console.print(f"written to {output}")
