"""The documentation's code blocks."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language and its text."""

    language: str
    text: str


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page, in their order."""
    found = _BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    return [Block(language, text) for language, text in found]
