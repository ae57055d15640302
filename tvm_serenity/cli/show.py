"""Output of commands: JSON, tables, and the progress of long searches."""

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
    """A console that prints control characters as escape sequences.

    Control characters in a file or its name could otherwise move the cursor or reset the terminal.
    """

    def __init__(self, **options: Any) -> None:
        """Create a console that does not turn names between colons into emoji."""
        super().__init__(emoji=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the printed segments; control codes of the terminal itself pass unchanged."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                lines = "\n".join(map(printable, segment.text.split("\n")))
                yield Segment(lines, segment.style)


console = PlainConsole(highlight=False)


def plain(text: str) -> None:
    """Print ``text`` without style or line breaks; control characters become escapes."""
    print("\n".join(map(printable, text.split("\n"))))


def print_json(value: Mapping[str, Any]) -> None:
    """Print ``value`` as JSON on standard output."""
    sys.stdout.write(f"{json_text(value)}\n")


def json_text(value: object, margin: str = "\n") -> str:
    """Return ``json.dumps(value, indent=2)``; long lists of numbers are formatted faster."""
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
    """Return ``count`` with separated thousands; "-" for None."""
    return "-" if count is None else f"{count:,}"


def arena_text(placed: "Plan") -> str:
    """Return the arena size of a placement in bytes with separated thousands, or "not placed"."""
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
"""Seconds between two progress lines of a search if standard error is not a terminal."""


class ProgressLine:
    """The progress of a long command on standard error.

    A terminal shows one line that is rewritten, with a bar where kernels are counted. Elsewhere
    each step prints a line, and a long step prints its progress or its elapsed time every
    ``PLAIN_EVERY_S`` seconds. A command that takes more than a second prints its label first.
    """

    def __init__(self, label: str, console: Console, status: "Status | None" = None) -> None:
        self.label, self._console, self._status = label, console, status
        self._begun = self._said = time.monotonic()
        self._over = threading.Event()

    @contextmanager
    def ticking(self) -> Iterator[None]:
        """Print the elapsed time within the block while no other progress is printed."""
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
            elif now - self._said >= 1.1 * PLAIN_EVERY_S:  # a progress of the search has precedence
                self._line(f"{self.label}: {now - self._begun:.0f} s")

    def step(self, text: str) -> None:
        """Print the step that begins."""
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
        """Print the progress of a search."""
        text = _search_text(report)
        if self._status is not None:
            self._status.update(f"{escape(self.label)}: {text}")
        elif time.monotonic() - self._said >= PLAIN_EVERY_S:
            self._line(f"{self.label}: {text}")

    def _line(self, text: str) -> None:
        self._said = time.monotonic()
        print(f"serenity: {printable(text)}", file=sys.stderr, flush=True)

    def __call__(self, report: "Ordering | Placing") -> None:
        """Do what ``search`` does: searches take an object of this class as their callback."""
        self.search(report)


@contextmanager
def progress(label: str) -> Iterator[ProgressLine]:
    """Yield the progress line of a command, labelled ``label``."""
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


def end_interrupted(result: str) -> NoReturn:
    """End the command after Ctrl-C and say that it printed the best ``result`` so far."""
    print(f"serenity: interrupted; this is the best {result} so far", file=sys.stderr)
    raise typer.Exit(130)


def warn(text: str) -> None:
    """Print ``text`` on standard error in one line."""
    print(f"serenity: {printable(text)}", file=sys.stderr, flush=True)


@contextmanager
def warnings_on_stderr() -> Iterator[None]:
    """Print each :class:`SerenityWarning` of the block on standard error."""
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
    """Warn on standard error if the native core of the searches is not installed."""
    try:
        import tvm_serenity._schedule  # noqa: F401
    except ImportError:
        warn(
            "the native core is not installed (no C++17 compiler at installation); the searches "
            "run in Python: same results, about 100 times slower"
        )
