"""Checks the English that a program can check: words that are not used, and names.

    python scripts/lint_english.py [--update]

Pages must have none of the words below, but for the glossary. Python packages are counted, strings
and docstrings, and compared with ``scripts/lint_english.toml``: a count may only fall. ``--update``
writes the counts of today.
"""

import argparse
import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BASELINE = ROOT / "scripts" / "lint_english.toml"
WORDS = {
    r"referees?": "reference runtime",
    r"judge[sd]?|judging": "reference runtime; compare",
    r"garbage": "poisoned memory",
    r"written over|write[-_ ]over|writing over": "overlap",
    r"roomy": "workspace upgrade",
    r"lying": "memory map",
    r"ways": "strategies, fallbacks",
    r"triples|quads|nines|fours|twos|lifted": "register tile",
    r"windows that move": "incremental inference",
    r"so many times": "at most FACTOR times",
    r"nobody": "a noun of the field",
    r"settled": "proved",
    r"rivals?": "other planners, runtimes",
}
"""What is not written, as a pattern of whole words, and what is written instead."""
ALLOWED = {
    ("ways", "tvm_serenity/cycles"),  # a cache has ways
    ("ways", "docs/results/latency.md"),
}
"""A word, and where it has its own meaning in the field."""
EXEMPT = ("docs/glossary.md",)
"""Pages that list the words themselves."""
NAMES = ("found", "made", "how", "what", "whole", "apart", "lying", "over")
"""What no function, class or file is called."""
FENCE = re.compile(r"^(```|    )")


def pattern(words: str) -> re.Pattern[str]:
    """Return a pattern of whole words, in any case."""
    return re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.IGNORECASE)


PATTERNS = [(pattern(words), instead) for words, instead in WORDS.items()]


def words_in(text: str, path: str) -> Iterator[tuple[str, str]]:
    """Yield the words of a text that are not used, and what is written instead."""
    for known, instead in PATTERNS:
        for match in known.finditer(text):
            word = match.group().lower()
            if not any(word == w and path.startswith(place) for w, place in ALLOWED):
                yield word, instead


def pages() -> list[Path]:
    """Return the pages that must be clean."""
    listed = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    listed += sorted((ROOT / "docs").rglob("*.md"))
    return [p for p in listed if p.relative_to(ROOT).as_posix() not in EXEMPT]


def of_page(path: Path) -> list[str]:
    """Return a line for each word of a page that is not used, code blocks left out."""
    name, fenced, wrong = path.relative_to(ROOT).as_posix(), False, []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        if fenced:
            continue
        prose = re.sub(r"`[^`]*`|\]\([^)]*\)", "", line)
        wrong += [
            f"{name}:{number}: {word!r}: {instead}" for word, instead in words_in(prose, name)
        ]
    return wrong


def package_of(path: Path) -> str:
    """Return the package that a file is counted with."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def of_source(path: Path) -> Iterator[str]:
    """Yield a line for each word in a file's strings, and each name, that is not used."""
    name = path.relative_to(ROOT).as_posix()
    if path.stem in NAMES:
        yield f"{name}: the file is called {path.stem!r}"
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.lower() in NAMES:
            yield f"{name}:{node.lineno}: {node.name!r} is a name without a noun"
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for word, instead in words_in(node.value, name):
                yield f"{name}:{node.lineno}: {word!r}: {instead}"


def sources() -> list[Path]:
    """Return the Python files that are counted."""
    folders = ("tvm_serenity", "passes", "benchmarks", "scripts", "docs")
    files = [p for folder in folders for p in sorted((ROOT / folder).rglob("*.py"))]
    return [
        p for p in files if p != Path(__file__) and (ROOT / "tvm_serenity/passes") not in p.parents
    ]


def counts() -> tuple[Counter[str], list[str]]:
    """Return how many lines each package has, and the lines."""
    found, lines = Counter[str](), []
    for path in sources():
        wrong = list(of_source(path))
        found[package_of(path)] += len(wrong)
        lines += wrong
    return found, lines


def baseline() -> dict[str, int]:
    """Return how many each package may have."""
    return {k: int(v) for k, v in tomllib.loads(BASELINE.read_text())["packages"].items()}


def main() -> int:
    """Print what is wrong; return 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--update", action="store_true", help="write the counts of today")
    parser.add_argument("--list", action="store_true", help="print every line of the packages")
    asked = parser.parse_args()
    today, lines = counts()
    if asked.update:
        rows = [f'"{name}" = {count}' for name, count in sorted(today.items()) if count]
        head = "# Words and names that scripts/lint_english.py finds, by package: only lower these."
        BASELINE.write_text("\n".join([head, "[packages]", *rows, ""]))
    if asked.list:
        print("\n".join(lines))
    wrong = [line for page in pages() for line in of_page(page)]
    allowed = baseline()
    for name, count in sorted(today.items()):
        if count > allowed.get(name, 0):
            wrong += [line for line in lines if package_of(ROOT / line.split(":")[0]) == name]
            wrong.append(f"{name}: {count} words or names, at most {allowed.get(name, 0)}")
    lower = [n for n, most in allowed.items() if today[n] < most]
    if lower:
        print(f"fewer than the baseline, lower it with --update: {', '.join(lower)}")
    print("\n".join(wrong) if wrong else "English: clean")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
