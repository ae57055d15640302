"""Puts the tables of rewrite rules, made from their files, into the pages that ask for them."""

from typing import Any

MARK = "<!-- rules -->"
RELAY_MARK = "<!-- rules of Relay -->"


def table(relay: bool = False) -> str:
    """Return a row for each rewrite rule, in the order of their numbers, as a Markdown table.

    ``relay``: of the rules alone that ask nothing of kernels which those of Relay cannot do.
    """
    from tvm_serenity.rewrite import RULES

    rows = (
        f"| {number} | `{rule.name}` | {rule.exchanges} | {rule.promise} |"
        for number, rule in enumerate(RULES.values(), 1)
        if not (relay and rule.abilities)
    )
    return "\n".join(("| | rule | exchanges | promise |", "|---|---|---|---|", *rows))


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page with the tables in place of their marks."""
    for mark, relay in ((MARK, False), (RELAY_MARK, True)):
        if mark in markdown:
            markdown = markdown.replace(mark, table(relay))
    return markdown
