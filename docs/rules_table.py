"""Puts the table of rewrite rules, made from their files, into the page that asks for it."""

from typing import Any

MARK = "<!-- rules -->"


def table() -> str:
    """Return a row for each rewrite rule, in the order of their numbers, as a Markdown table."""
    from tvm_serenity.rewrite import RULES

    rows = (
        f"| {number} | `{rule.name}` | {rule.exchanges} | {rule.promise} |"
        for number, rule in enumerate(RULES.values(), 1)
    )
    return "\n".join(("| | rule | exchanges | promise |", "|---|---|---|---|", *rows))


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page with the table in place of its mark."""
    return markdown.replace(MARK, table()) if MARK in markdown else markdown
