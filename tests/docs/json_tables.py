"""The tables of docs/reference/json.md as JSON Schemas, and which of their keys an answer has."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from jsonschema import Draft202012Validator

from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "reference" / "json.md"
TYPES: dict[str, dict[str, Any]] = {
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "null": {"type": "null"},
    "any": {},
}
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_ROW = re.compile(r"^\| `([^`]+)` \| (.+?) \|", re.MULTILINE)
_LINK = re.compile(r"\[(.+)\]\(#([a-z0-9-]+)\)")


@dataclass
class Tables:
    """``schemas`` by heading, as anchors write it; ``keys``: those a table has."""

    schemas: dict[str, dict[str, Any]] = field(default_factory=dict)
    keys: dict[str, set[str]] = field(default_factory=dict)

    def check(self, name: str, answer: Any) -> list[str]:
        """Return what ``answer`` has that the table ``name`` does not allow, or lacks."""
        schema = {"$ref": f"#/$defs/{name}", "$defs": self.schemas}
        found = Draft202012Validator(schema).iter_errors(answer)
        return [f"{error.json_path}: {error.message[:300]}" for error in found]

    def seen(self, name: str, answer: Any) -> set[tuple[str, str]]:
        """Return the keys of tables that ``answer`` has: pairs of table and key."""
        return set(self._seen(name, "", self.schemas[name], answer))

    def _seen(self, table: str, path: str, schema: Any, value: Any) -> Iterator[tuple[str, str]]:
        if "$ref" in schema:
            table = schema["$ref"].removeprefix("#/$defs/")
            yield from self._seen(table, "", self.schemas[table], value)
        for option in schema.get("anyOf", ()):
            validator = Draft202012Validator({**option, "$defs": self.schemas})
            if validator.is_valid(value):
                yield from self._seen(table, path, option, value)
        if isinstance(value, dict):
            for name, part in value.items():
                known = name if name in schema.get("properties", {}) else "*"
                inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
                if isinstance(inner, dict):
                    below = f"{path}.{known}" if path else known
                    yield table, below
                    yield from self._seen(table, below, inner, part)
        if isinstance(value, list) and "items" in schema:
            for part in value:
                yield from self._seen(table, f"{path}[]", schema["items"], part)


def tables() -> Tables:
    """Return the page's tables."""
    found = Tables()
    _, *parts = _SECTION.split(PAGE.read_text(encoding="utf-8"))
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        name = slug(title)
        assert name not in found.schemas, title
        schema = _object()
        for key, kind in _ROW.findall(text):
            _insert(schema, key, type_of(kind))
        found.schemas[name] = schema
        found.keys[name] = {key.replace("?", "") for key, _ in _ROW.findall(text)}
    return found


def slug(title: str) -> str:
    """Return the anchor of a heading."""
    return re.sub(r"[^a-z0-9-]", "", title.lower().replace(" ", "-"))


def type_of(text: str) -> dict[str, Any]:
    """Return the schema of what a table writes as a type."""
    options = text.strip().split(" or ")
    if len(options) > 1:
        return {"anyOf": [type_of(option) for option in options]}
    if text.startswith("list of "):
        return {"type": "array", "items": type_of(text.removeprefix("list of "))}
    link = _LINK.fullmatch(text.strip())
    if link is None:
        return dict(TYPES[text.strip()])
    assert slug(link[1]) == link[2] or link[1] in ("TFLM's plan",), text
    return {"$ref": f"#/$defs/{link[2]}"}


def _object() -> dict[str, Any]:
    return {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def _insert(schema: dict[str, Any], key: str, kind: dict[str, Any]) -> None:
    """Enter a key, by its path, into the schema of an object."""
    first, _, rest = key.partition(".")
    name = first.removesuffix("?").removesuffix("[]")
    listed = first.removesuffix("?").endswith("[]")
    if name == "*":
        known = schema["additionalProperties"] or None
    else:
        known = schema["properties"].get(name)
    if known is None:
        known = _object() if rest else kind
        known = {"type": "array", "items": known} if listed else known
    if rest:
        _insert(known["items"] if listed else known, rest, kind)
    if name == "*":
        schema["additionalProperties"] = known
        return
    schema["properties"][name] = known
    if not first.endswith("?") and name not in schema["required"]:
        schema["required"].append(name)
