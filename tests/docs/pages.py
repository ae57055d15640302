"""The documentation's code blocks, and what makes its tables."""

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = ("README.md", *sorted(p.relative_to(ROOT).as_posix() for p in DOCS.rglob("*.md")))
"""Every page, by its path from the root."""
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language and its text."""

    language: str
    text: str

    @property
    def commands(self) -> str:
        """What a shell is given: the block, or what stands behind its prompts."""
        if self.language != "console":
            return self.text
        lines = self.text.splitlines()
        return "\n".join(line[2:] for line in lines if line.startswith("$ ")) + "\n"


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page (its path from the root), in their order."""
    found = _BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    return [Block(language, text) for language, text in found]


def hook(name: str) -> Any:
    """Return a module of docs/ that puts tables into pages."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
