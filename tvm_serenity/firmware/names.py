"""Names that C accepts."""

import re
from collections.abc import Iterable

KEYWORDS = frozenset(
    [
        "auto",
        "bool",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "false",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "true",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
    ]
)


def identifier(text: str) -> str:
    """Return ``text`` as a C identifier in lower case."""
    name = re.sub(r"[^0-9a-zA-Z]+", "_", text).strip("_").lower() or "unnamed"
    return f"_{name}".lstrip("_") if name[0].isalpha() and name not in KEYWORDS else f"n_{name}"


def unique(names: Iterable[str]) -> list[str]:
    """Return ``names`` with a number behind each that came before."""
    seen: set[str] = set()
    result = []
    for name in names:
        made, count = name, 1
        while made in seen:
            count += 1
            made = f"{name}_{count}"
        seen.add(made)
        result.append(made)
    return result
