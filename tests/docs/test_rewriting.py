"""The page on rewriting has a table of the rules, made from their files."""

from tests.docs.pages import ROOT, hook
from tvm_serenity.rewrite import RULES


def test_the_page_has_a_row_for_each_rule() -> None:
    page = hook("rules_table").on_page_markdown((ROOT / "docs" / "rewriting.md").read_text())
    rows = [
        [c.strip() for c in row.split("|")[1:-1]] for row in page.splitlines() if row[:1] == "|"
    ]
    rules = [row for row in rows if row[0].isdigit()]
    assert [row[1].strip("`") for row in rules] == list(RULES)
    assert [row[3] for row in rules] == [str(rule.promise) for rule in RULES.values()]
    assert all(row[2] for row in rules)
