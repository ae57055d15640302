"""What commands print: JSON, tables, and the progress of a long search."""

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

if TYPE_CHECKING:
    from rich.status import Status

    from tvm_serenity.plan.result import Progress as Placing
    from tvm_serenity.schedule.result import Progress as Ordering

console = Console(highlight=False)


def print_json(value: Mapping[str, Any]) -> None:
    """Print ``value`` as JSON on standard output."""
    json.dump(value, sys.stdout, indent=2)
    sys.stdout.write("\n")


def bytes_text(count: int | None) -> str:
    """Return bytes with thousands separated."""
    return "-" if count is None else f"{count:,}"


def facts(title: str, rows: Mapping[str, str]) -> None:
    """Print names and values as a table of two columns."""
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left", show_header=False, box=None)
    table.add_column(style="dim")
    table.add_column()
    for name, value in rows.items():
        table.add_row(escape(name), escape(value))
    console.print(table)


PLAIN_EVERY_S = 5.0
"""Seconds between two lines of a search's progress where there is no terminal."""


class ProgressLine:
    """What a long command shows of itself on standard error; nothing goes to standard output.

    On a terminal one line is rewritten; elsewhere every step is a line of its own, and a search
    in it one at most every ``PLAIN_EVERY_S`` seconds.
    """

    def __init__(self, label: str, console: Console, status: "Status | None" = None) -> None:
        self.label, self._console, self._status = label, console, status
        self._said = time.monotonic()

    def step(self, text: str) -> None:
        """Say which step begins."""
        if self._status is not None:
            self._console.print(f"[dim]{escape(text)}[/]")
        else:
            self._line(text)

    def search(self, report: "Ordering | Placing") -> None:
        """Say how far a search has come."""
        text = _search_text(report)
        if self._status is not None:
            self._status.update(f"{escape(self.label)}: {text}")
        elif time.monotonic() - self._said >= PLAIN_EVERY_S:
            self._line(f"{self.label}: {text}")

    def _line(self, text: str) -> None:
        self._said = time.monotonic()
        print(f"serenity: {text}", file=sys.stderr, flush=True)

    def __call__(self, report: "Ordering | Placing") -> None:
        """The same as ``search``: a progress is what searches take as their callback."""
        self.search(report)


@contextmanager
def progress(label: str) -> Iterator[ProgressLine]:
    """Yield what shows the progress of a command."""
    err = Console(stderr=True)
    if not err.is_terminal:
        yield ProgressLine(label, err)
        return
    with err.status(escape(label)) as status:
        yield ProgressLine(label, err, status)


def _search_text(report: "Ordering | Placing") -> str:
    from tvm_serenity.plan.result import Progress as Placing

    if isinstance(report, Placing):
        best, states = report.arena_bytes, report.nodes
    else:
        best, states = report.best_bytes, report.states
    bound = report.lower_bound_bytes
    gap = (best - bound) / bound if bound else 0.0
    rate = states / report.seconds if report.seconds > 0 else 0.0
    return (
        f"best {best:,} B, bound {bound:,} B, gap {gap:.1%}, "
        f"{states:,} states, {rate:,.0f}/s, {report.seconds:.0f} s"
    )


def end_interrupted(what: str) -> NoReturn:
    """End the command after Ctrl-C, with what it printed being the best until then."""
    print(f"serenity: interrupted; this is the best {what} so far", file=sys.stderr)
    raise typer.Exit(130)


def warn_without_core() -> None:
    """Say on standard error that the searches run without their native core."""
    try:
        import tvm_serenity._schedule  # noqa: F401
    except ImportError:
        print(
            "serenity: the native core is not installed (no C++17 compiler at installation); "
            "searches run in Python: same results, about 100 times slower",
            file=sys.stderr,
        )
