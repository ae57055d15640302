"""Pages say who they are for, words and names are the glossary's, help fits 80 columns."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import serenity
from tests.docs.pages import DOCS, PAGES, ROOT
from tvm_serenity.cli import derive
from tvm_serenity.cli.commands import register
from tvm_serenity.options.option import options_of

register()
COMMANDS = [(one.prefix, one.name) for one in derive.REGISTERED]
COLUMNS = 80


@pytest.fixture(scope="module")
def lint() -> Any:
    spec = importlib.util.spec_from_file_location("lint_english", ROOT / "scripts/lint_english.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda p: p.stem)
def test_the_first_two_lines_say_who_a_page_is_for(page: Path) -> None:
    title, empty, reader, gives, end = page.read_text(encoding="utf-8").split("\n")[:5]
    assert title.startswith("# ")
    assert reader.startswith("For ")
    assert gives
    assert (empty, end) == ("", "")


FOLDERS = ("", "tvm_serenity", "tvm_serenity/firmware", "tvm_serenity/sparse")
SOURCE = re.compile(r"`((?:\w+/)+\w+\.py)`")


@pytest.mark.parametrize("page", PAGES)
def test_sources_that_a_page_names_are_there(page: str) -> None:
    named = SOURCE.findall((ROOT / page).read_text(encoding="utf-8"))
    assert [n for n in named if not any((ROOT / f / n).is_file() for f in FOLDERS)] == []


def test_pages_use_the_terms_of_the_glossary(lint: Any) -> None:
    assert [line for page in lint.pages() for line in lint.of_page(page)] == []


def test_packages_have_no_more_words_than_the_baseline(lint: Any) -> None:
    today, _ = lint.counts()
    allowed = lint.baseline()
    assert {n: c for n, c in today.items() if c > allowed.get(n, 0)} == {}


def test_a_word_and_a_name_are_found(lint: Any, tmp_path: Path) -> None:
    page, source = tmp_path / "page.md", tmp_path / "found.py"
    page.write_text("The Referee\n```text\ngarbage\n```\n`judge` [x](ways.md) judged\n")
    source.write_text('"""Written over."""\n\n\ndef made() -> None: ...\n\n\nnone = "always"\n')
    lint.ROOT = tmp_path
    assert [line.split(": ")[1] for line in lint.of_page(page)] == ["'referee'", "'judged'"]
    assert [line.split(": ", 1)[1] for line in lint.of_source(source)] == [
        "'found' does not name a concept; rename the file",
        "'made' does not name a concept; rename it",
        "'written over': overlap",
    ]
    lint.ROOT = ROOT


@pytest.mark.parametrize(("prefix", "name"), COMMANDS)
def test_help_fits_80_columns(prefix: str, name: str) -> None:
    words = [prefix, name] if prefix else [name]
    done = serenity(*words, "--help", columns=COLUMNS)
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= COLUMNS


def test_help_has_no_hard_line_breaks() -> None:
    for one in derive.REGISTERED:
        for paragraph in derive.unwrapped(one.handler.__doc__ or "").split("\n\n"):
            lines = paragraph.split("\n")
            assert len(lines) == 1 or any(line.startswith("  ") for line in lines), one.name
        for group in derive.groups_of(one.handler).values():
            assert not any("\n" in option.help for option in options_of(group).values()), one.name


def test_a_paragraph_is_one_line_and_examples_stay() -> None:
    """The terminal wraps the first; the second is laid out by hand."""
    text = """Do this
    and that.

    [dim]Examples[/dim]
      serenity x
      serenity y
    """
    assert derive.unwrapped(text) == (
        "Do this and that.\n\n[dim]Examples[/dim]\n  serenity x\n  serenity y"
    )
