"""Docstrings of the library as Markdown: roles and plain tables as the reference shows them."""

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|data|func|meth|mod):(`[^`]+`)")
_RULE = re.compile(r"^=+(?: +=+)+$")


def as_markdown(text: str) -> str:
    """Return a docstring with roles left out and what is laid out by spaces in a code block."""
    lines, inside = [], False
    rules = 0
    for line in _ROLE.sub(r"\1", text).splitlines():
        if _RULE.match(line.strip()):
            rules += 1
            if not inside:
                lines += ["```text"]
                inside = True
            lines.append(line)
            if rules == 3:
                lines += ["```"]
                inside, rules = False, 0
            continue
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)


class Docstrings(griffe.Extension):  # type: ignore[misc]
    """Changes every docstring that the reference is generated from."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Rewrite one object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
