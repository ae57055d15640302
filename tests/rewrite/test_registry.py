"""A rewrite rule is one file and one line: no other file of the library knows its name."""

import ast
from importlib import import_module
from pathlib import Path

from tvm_serenity.rewrite import RULES, rules

FOLDER = Path(rules.__path__[0])
ROOT = FOLDER.parents[1]
ELSEWHERE = {
    ("graph/text.py", "in-place"): "a word of the text form of graphs",
    ("quantize/choices.py", "fold"): "what is done with channels that are constant",
    ("explain/measures.py", "in-place"): "a choice of schedule, whose option has the name",
    ("papers/serenity_figure_12.py", "fold"): "what the paper's figure does first",
    ("papers/serenity_table_2.py", "fold"): "what the paper's table does first",
}
"""Words that are no names of rules."""


def test_every_file_is_registered() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} - {"__init__"} == set(rules.MODULES)
    declared = [import_module(f"{rules.__name__}.{name}").RULE for name in rules.MODULES]
    assert list(RULES.values()) == declared
    assert len(RULES) == len(declared)
    assert [name.replace("-", "_") for name in RULES] == list(rules.MODULES)


def test_no_other_file_names_a_rule() -> None:
    found = {
        (path.relative_to(ROOT).as_posix(), node.value)
        for path in ROOT.rglob("*.py")
        if path.parent != FOLDER
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in RULES
    }
    assert found == set(ELSEWHERE)
