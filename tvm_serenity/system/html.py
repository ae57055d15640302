"""Small pieces of HTML for notebooks."""

from collections.abc import Mapping, Sequence
from html import escape


def facts_html(title: str, facts: Mapping[str, str]) -> str:
    """Return a table of two columns under a title; all text is escaped."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in facts.items()
    )
    caption = f"<caption style='text-align:left'><b>{escape(title)}</b></caption>"
    return f"<table>{caption}{rows}</table>"


def listed(items: Sequence[str], most: int = 8) -> str:
    """Return the first items separated by commas, and the number of the others."""
    shown = ", ".join(items[:most])
    return f"{shown} and {len(items) - most:,} more" if len(items) > most else shown
