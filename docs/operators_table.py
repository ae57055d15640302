"""Puts the table of operators, made from their records, into the page that asks for it."""

from typing import Any

MARK = "<!-- operators -->"


def table() -> str:
    """Return what is known of every TFLite operator that has a record, as a Markdown table."""
    from tvm_serenity.operators import MODULES, OPERATORS, Memory, Operator

    memory = {Memory.ELEMENTWISE: "in place", Memory.COPY: "a view", Memory.CONCAT: "a concat"}

    def row(kind: str, record: Operator) -> str:
        integers = "own kernel" if record.read else "stored values move" if record.moves else ""
        if record.float_only:
            integers = "refused: LiteRT has none"
        specified = "yes" if record.reference else ""
        rows = "yes" if record.by_rows else ""
        cells = (kind, integers, specified, rows, memory.get(record.memory, ""))
        return f"| {' | '.join(cells)} |"

    rows = [row(k, r) for k, r in sorted(OPERATORS.items()) if k.isupper()]
    head = (
        "| operator | quantised | specified in numpy | by rows | memory |\n|---|---|---|---|---|\n"
    )
    return f"{head}{chr(10).join(rows)}\n\n{len(rows)} kinds in {len(MODULES)} files.\n"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page with the table in place of its mark."""
    return markdown.replace(MARK, table()) if MARK in markdown else markdown
