"""Checks pages, docstrings, messages and names for words that the glossary excludes.

    python scripts/lint_english.py [--update] [--list]

Pages other than the glossary must not contain any of these words. In each Python package, the words
in strings and docstrings are counted and compared with ``scripts/lint_english.toml``: a count may
only decrease. ``--update`` writes the current counts to this file.
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
"""Maps an excluded word (a pattern of whole words) to the term to use instead."""
ALLOWED = {
    ("ways", "tvm_serenity/cycles"),  # A cache has ways.
    ("ways", "docs/results/latency.md"),
}
"""Pairs of a word and a path in which the word is a term of the field."""
EXEMPT = ("docs/glossary.md",)
"""Pages that are not checked, because they list the excluded words."""
NAMES = ("found", "made", "how", "what", "whole", "apart", "lying", "over")
"""Names that no function, class or file may have."""
FENCE = re.compile(r"^(```|    )")


def pattern(words: str) -> re.Pattern[str]:
    """Return a case-insensitive regular expression that matches ``words`` as whole words."""
    return re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.IGNORECASE)


PATTERNS = [(pattern(words), instead) for words, instead in WORDS.items()]


def words_in(text: str, path: str) -> Iterator[tuple[str, str]]:
    """Yield pairs of an excluded word in ``text`` and the term to use instead."""
    for known, instead in PATTERNS:
        for match in known.finditer(text):
            word = match.group().lower()
            if not any(word == w and path.startswith(place) for w, place in ALLOWED):
                yield word, instead


def pages() -> list[Path]:
    """Return the pages to check."""
    listed = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    listed += sorted((ROOT / "docs").rglob("*.md"))
    return [p for p in listed if p.relative_to(ROOT).as_posix() not in EXEMPT]


def of_page(path: Path) -> list[str]:
    """Return a message for each excluded word of a page, without its code blocks."""
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
    """Return the name of the package to which the words of a file are counted."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def of_source(path: Path) -> Iterator[str]:
    """Yield a message for each excluded word in a file's strings and for each excluded name."""
    name = path.relative_to(ROOT).as_posix()
    if path.stem in NAMES:
        yield f"{name}: {path.stem!r} does not name a concept; rename the file"
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.lower() in NAMES:
            yield f"{name}:{node.lineno}: {node.name!r} does not name a concept; rename it"
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for word, instead in words_in(node.value, name):
                yield f"{name}:{node.lineno}: {word!r}: {instead}"


def sources() -> list[Path]:
    """Return the Python files to check."""
    folders = ("tvm_serenity", "passes", "benchmarks", "scripts", "docs")
    files = [p for folder in folders for p in sorted((ROOT / folder).rglob("*.py"))]
    return [
        p for p in files if p != Path(__file__) and (ROOT / "tvm_serenity/passes") not in p.parents
    ]


def counts() -> tuple[Counter[str], list[str]]:
    """Return the number of messages per package, and the messages."""
    totals, lines = Counter[str](), []
    for path in sources():
        wrong = list(of_source(path))
        totals[package_of(path)] += len(wrong)
        lines += wrong
    return totals, lines


def baseline() -> dict[str, int]:
    """Return the allowed number of messages per package."""
    return {k: int(v) for k, v in tomllib.loads(BASELINE.read_text())["packages"].items()}


def main() -> int:
    """Print the violations; return 1 if there are any, else 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--update", action="store_true", help="write the current counts")
    parser.add_argument("--list", action="store_true", help="print the messages of all packages")
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
            limit = allowed.get(name, 0)
            wrong.append(f"{name}: {count} excluded words or names, at most {limit}; see --list")
    lower = [n for n, most in allowed.items() if today[n] < most]
    if lower:
        print(f"below the baseline, which --update lowers: {', '.join(lower)}")
    print("\n".join(wrong) if wrong else "English: clean")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
