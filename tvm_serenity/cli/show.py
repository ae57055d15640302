"""What commands print: JSON, tables, and the progress of a long search."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

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
    table = Table(title=escape(title), title_justify="left", show_header=False, box=None)
    table.add_column(style="dim")
    table.add_column()
    for name, value in rows.items():
        table.add_row(escape(name), escape(value))
    console.print(table)


@contextmanager
def progress(label: str) -> Iterator[Callable[[Any], None] | None]:
    """Yield a callback that shows a search's progress, or None where nobody watches."""
    err = Console(stderr=True)
    if not err.is_terminal:
        yield None
        return
    with err.status(label) as status:

        def update(report: Any) -> None:
            best = getattr(report, "best_bytes", None) or getattr(report, "arena_bytes", 0)
            states = getattr(report, "states", None) or getattr(report, "nodes", 0)
            bound = report.lower_bound_bytes
            gap = (best - bound) / bound if bound else 0.0
            rate = states / report.seconds if report.seconds > 0 else 0.0
            status.update(
                f"{label}: best {best:,} B, bound {bound:,} B, gap {gap:.1%}, "
                f"{states:,} states, {rate:,.0f}/s, {report.seconds:.0f} s"
            )

        yield update


def end_interrupted(what: str) -> NoReturn:
    """End the command after Ctrl-C, with what it printed being the best until then."""
    print(f"serenity: interrupted; this is the best {what} so far", file=sys.stderr)
    raise typer.Exit(130)


def warn_without_core() -> None:
    """Say on standard error that the searches run without their native core."""
    try:
        import tvm_serenity._order  # noqa: F401
    except ImportError:
        print(
            "serenity: the native core is not installed (no C++17 compiler at installation); "
            "searches run in Python: same results, about 100 times slower",
            file=sys.stderr,
        )
