"""What commands print: JSON, tables, and the progress of a long search."""

import json
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment

from tvm_serenity.errors import SerenityWarning
from tvm_serenity.frontends.model_file import printable
from tvm_serenity.system.counted import Counted

if TYPE_CHECKING:
    from rich.status import Status

    from tvm_serenity.plan.result import Plan
    from tvm_serenity.plan.result import Progress as Placing
    from tvm_serenity.schedule.result import Progress as Ordering


class PlainConsole(Console):
    """A console that writes control characters of names and paths as escapes.

    What a file or its name holds could otherwise move the cursor or reset the terminal.
    """

    def __init__(self, **options: Any) -> None:
        """Names between colons are names, no emoji."""
        super().__init__(emoji=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield what is written; a terminal's own control codes are segments of their own."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                lines = "\n".join(map(printable, segment.text.split("\n")))
                yield Segment(lines, segment.style)


console = PlainConsole(highlight=False)


def plain(text: str) -> None:
    """Print lines as they are, without style or breaks, control characters as escapes."""
    print("\n".join(map(printable, text.split("\n"))))


def print_json(value: Mapping[str, Any]) -> None:
    """Print ``value`` as JSON on standard output."""
    sys.stdout.write(f"{json_text(value)}\n")


def json_text(value: object, margin: str = "\n") -> str:
    """Return what ``json.dumps(value, indent=2)`` returns; long lists of numbers at once."""
    inner = margin + "  "
    if isinstance(value, dict) and value:
        pairs = (f"{_key(key)}: {json_text(item, inner)}" for key, item in value.items())
        return f"{{{inner}{f',{inner}'.join(pairs)}{margin}}}"
    if isinstance(value, list | tuple) and value:
        items: Iterable[str]
        kinds = set(map(type, value))
        if kinds == {int}:
            items = map(repr, value)
        elif kinds == {str}:
            items = map(encode_basestring_ascii, value)
        else:
            items = (json_text(item, inner) for item in value)
        return f"[{inner}{f',{inner}'.join(items)}{margin}]"
    return json.dumps(value)


def _key(key: object) -> str:
    return json.dumps(key if isinstance(key, str) else json.dumps(key))


def bytes_text(count: int | None) -> str:
    """Return bytes with thousands separated."""
    return "-" if count is None else f"{count:,}"


def arena_text(placed: "Plan") -> str:
    """Return the arena of a placement with thousands separated, in words where there is none."""
    return bytes_text(placed.arena_bytes) if placed.is_placed else "not placed"


def facts(title: str, rows: Mapping[str, str]) -> None:
    """Print names and values as a table of two columns."""
    from rich.table import Table

    table = Table(title=escape(printable(title)), title_justify="left", show_header=False, box=None)
    table.add_column(style="dim")
    table.add_column()
    for name, value in rows.items():
        table.add_row(escape(printable(name)), escape(printable(value)))
    console.print(table)


BAR_WIDTH = 24
PLAIN_EVERY_S = 5.0
"""Seconds between two lines of a search's progress where there is no terminal."""


class ProgressLine:
    """What a long command shows of itself on standard error; nothing goes to standard output.

    On a terminal one line is rewritten; elsewhere every step is a line of its own, and what takes
    longer says so every ``PLAIN_EVERY_S`` seconds: how far a search has come, or how long it was.
    What is counted is a bar on a terminal. A command that is not over after a second names itself.
    """

    def __init__(self, label: str, console: Console, status: "Status | None" = None) -> None:
        self.label, self._console, self._status = label, console, status
        self._begun = self._said = time.monotonic()
        self._over = threading.Event()

    @contextmanager
    def ticking(self) -> Iterator[None]:
        """Say how long it takes while nothing else is said."""
        thread = threading.Thread(target=self._tick, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _tick(self) -> None:
        while not self._over.wait(PLAIN_EVERY_S / 5):
            now = time.monotonic()
            if self._said == self._begun:
                self._line(self.label)
            elif now - self._said >= 1.1 * PLAIN_EVERY_S:  # a search has its turn first
                self._line(f"{self.label}: {now - self._begun:.0f} s")

    def step(self, text: str) -> None:
        """Say which step begins."""
        counted = text if isinstance(text, Counted) else None
        if self._status is None:
            if counted is None or self._is_due(counted):
                self._line(text)
        elif counted is None:
            self._status.update(escape(self.label))
            self._console.print(f"[dim]{escape(text)}[/]")
        else:
            self._status.update(f"{escape(self.label)}: {_bar(counted)} {escape(text)}")

    def _is_due(self, counted: Counted) -> bool:
        """Whether a line tells of what is counted: at its end, and now and then."""
        passed = time.monotonic() - self._said
        return counted.done == counted.total or passed >= PLAIN_EVERY_S

    def search(self, report: "Ordering | Placing") -> None:
        """Say how far a search has come."""
        text = _search_text(report)
        if self._status is not None:
            self._status.update(f"{escape(self.label)}: {text}")
        elif time.monotonic() - self._said >= PLAIN_EVERY_S:
            self._line(f"{self.label}: {text}")

    def _line(self, text: str) -> None:
        self._said = time.monotonic()
        print(f"serenity: {printable(text)}", file=sys.stderr, flush=True)

    def __call__(self, report: "Ordering | Placing") -> None:
        """The same as ``search``: a progress is what searches take as their callback."""
        self.search(report)


@contextmanager
def progress(label: str) -> Iterator[ProgressLine]:
    """Yield what shows the progress of a command."""
    err = PlainConsole(stderr=True)
    if not err.is_terminal:
        line = ProgressLine(label, err)
        with line.ticking():
            yield line
        return
    with err.status(escape(label)) as status:
        yield ProgressLine(label, err, status)


def _bar(counted: Counted) -> str:
    """A bar as long as what is done of all."""
    full = BAR_WIDTH * counted.done // max(counted.total, 1)
    return "\u2588" * full + "\u2591" * (BAR_WIDTH - full)


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


def warn(text: str) -> None:
    """Say something on standard error, in a line."""
    print(f"serenity: {printable(text)}", file=sys.stderr, flush=True)


@contextmanager
def warnings_said() -> Iterator[None]:
    """Say every :class:`SerenityWarning` of the block on standard error."""
    usual = warnings.showwarning

    def say(message: Any, category: type[Warning], *rest: Any, **named: Any) -> None:
        if issubclass(category, SerenityWarning):
            warn(str(message))
        else:
            usual(message, category, *rest, **named)

    with warnings.catch_warnings():
        warnings.simplefilter("always", SerenityWarning)
        warnings.showwarning = say
        yield


def warn_without_core() -> None:
    """Say on standard error that the searches run without their native core."""
    try:
        import tvm_serenity._schedule  # noqa: F401
    except ImportError:
        warn(
            "the native core is not installed (no C++17 compiler at installation); "
            "searches run in Python: same results, about 100 times slower"
        )
