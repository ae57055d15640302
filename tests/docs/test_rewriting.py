"""Pages have tables of the rewrite rules, made from their files."""

import pytest

from tests.docs.pages import DOCS, hook
from tvm_serenity.rewrite import RULES


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("rewriting.md", list(RULES)),
        ("relay.md", ["channelwise", "kernelwise", "residual"]),
    ],
)
def test_a_page_has_a_row_for_each_rule(page: str, names: list[str]) -> None:
    text = hook("rules_table").on_page_markdown((DOCS / page).read_text())
    cells = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")]
    rules = [[cell.strip() for cell in row] for row in cells if row[0].strip().isdigit()]
    assert [row[1].strip("`") for row in rules] == names
    assert [row[3] for row in rules] == [str(RULES[name].promise) for name in names]
    assert [row[0] for row in rules] == [str(list(RULES).index(name) + 1) for name in names]
    assert all(row[2] for row in rules)
