"""Names in C: of types, and of what a program has names for."""

import re
from collections.abc import Iterable

C_TYPES = {
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "uint16": "uint16_t",
    "int32": "int32_t",
    "uint32": "uint32_t",
    "int64": "int64_t",
    "uint64": "uint64_t",
    "float32": "float",
    "float64": "double",
    "bool": "bool",
}
"""C's names of numpy's types."""

KEYWORDS = frozenset(
    [
        *("auto", "bool", "break", "case", "char", "const", "continue", "default", "do", "double"),
        *("else", "enum", "extern", "false", "float", "for", "goto", "if", "inline", "int", "long"),
        *("register", "restrict", "return", "short", "signed", "sizeof", "static", "struct"),
        *("switch", "true", "typedef", "union", "unsigned", "void", "volatile", "while"),
        *("and", "bitand", "bitor", "catch", "class", "compl", "concept", "delete", "explicit"),
        *("export", "friend", "mutable", "namespace", "new", "not", "nullptr", "operator", "or"),
        *("private", "protected", "public", "requires", "template", "this", "throw", "try"),
        *("typeid", "typename", "using", "virtual", "xor"),
    ]
)
"""Words of C, and of C++, which includes the interface, too."""

LIBRARY = frozenset(
    [
        *("abs", "acos", "asin", "atan", "cbrt", "ceil", "cos", "cosh", "div", "erf", "exp"),
        *("floor", "fma", "fmax", "fmin", "fmod", "gamma", "hypot", "index", "j0", "j1", "jn"),
        *("log", "main", "pow", "remainder", "rint", "round", "signal", "sin", "sinh", "sqrt"),
        *("tan", "tanh", "time", "trunc", "y0", "y1", "yn"),
    ]
)
"""Functions of C's library that a local variable would shadow."""


def identifier(text: str) -> str:
    """Return ``text`` as a C identifier in lower case."""
    name = re.sub(r"[^0-9a-zA-Z]+", "_", text).strip("_").lower() or "unnamed"
    return name if name[0].isalpha() and name not in KEYWORDS else f"n_{name}"


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


def weighted(dtype: str, bits: int) -> str:
    """Return how functions of the kernel library are named for inputs of a type and weights."""
    return dtype if bits == 8 else f"{dtype}_w{bits}"
