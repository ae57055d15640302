"""``serenity report``: one self-contained HTML page about the memory of a model."""

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
    """The options of what ``report`` shows; ``open``: open the page in the browser."""

    open: bool = option(
        False,
        Option(flag="--open", help="Open the page in the browser; without -o, a temporary file."),
    )


@command("report")
def report_command(model: Model, options: ReportOptions, shown: ShownReport) -> None:
    """Write one interactive HTML page about MODEL's memory, which opens offline.

    The page begins as explain does, with the best build for the board or the least memory, then
    memory over time before and after, and RAM against time. It shows the network in its best order,
    live memory step by step in the given and the best order (around the peaks for more than 5,000
    operators), the arena, rewrites, off-chip traffic, boards and proofs; with --firmware also
    milliseconds by operator. Each number equals the one that schedule, rewrite, explain, offchip or
    latency prints with --json.

    [dim]Examples[/dim]
      serenity report model.tflite --open
      serenity report model.tflite -o report.html
      serenity report zoo:swiftnet --board nucleo-f767zi -o report.html
    """
    if options.output is None and not shown.json and not shown.open:
        raise InputError("no output: give -o report.html, --open, or --json to print the numbers")
    if options.output is None and shown.open:
        folder = tempfile.mkdtemp(prefix="serenity-report-")
        options = replace(options, output=str(Path(folder) / "report.html"))
    show.warn_without_core()
    data = report(model, options, show.progress)
    output = options.output
    if shown.open and output is not None and not webbrowser.open(Path(output).resolve().as_uri()):
        print(f"serenity: no browser found; open {output} yourself", file=sys.stderr)
    if shown.json:
        show.print_json(data)
    else:
        show.console.print(f"written to {output}")
