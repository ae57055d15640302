"""Groups of options as JSON Schema (draft 2020-12), and as rows of a table."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from tvm_serenity.options.option import (
    Conflict,
    Option,
    conflicts_of,
    defaults_of,
    options_of,
    spelled,
)

_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


def schema(group: type) -> dict[str, Any]:
    """Return the JSON Schema of an object with the options of ``group`` by field name."""
    hints, defaults = get_type_hints(group), defaults_of(group)
    described = options_of(group)
    described_schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": group.__name__,
        "type": "object",
        "additionalProperties": False,
        "properties": {
            name: _property(one, hints[name], defaults[name]) for name, one in described.items()
        },
        "required": [name for name in described if defaults[name] is MISSING],
    }
    refused = [
        {"not": _both(name, conflict, group)}
        for name in described
        for conflict in conflicts_of(group, name)
    ]
    return {**described_schema, "allOf": refused} if refused else described_schema


def _property(one: Option, hint: Any, default: Any) -> dict[str, Any]:
    described = {"description": one.help, "x-flag": one.name, "x-group": str(one.group)}
    if one.unit:
        described["x-unit"] = one.unit
    if default is not MISSING:
        described["default"] = _plain(default)
    return {**described, **_values(one, hint)}


def _values(one: Option, hint: Any) -> dict[str, Any]:
    """Return the schema of the values that a field takes."""
    limits = {"minimum": one.least, "maximum": one.most, "exclusiveMinimum": one.above}
    within = {word: limit for word, limit in limits.items() if limit is not None}
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    types: list[dict[str, Any]] = []
    for part in parts:
        if part is NoneType:
            types.append({"type": "null"})
        elif get_origin(part) is Mapping:
            types.append({"type": "object", "additionalProperties": {"type": "integer"}})
        elif get_origin(part) in (Sequence, tuple):
            types.append({"type": "array"})
        elif hasattr(part, "__members__"):
            types.append({"enum": [str(member) for member in part]})
        elif part is str and one.choices:
            types.append({"enum": list(one.choices)})
        elif part in (int, float):
            types.append({"type": _TYPES[part], **within})
        elif part in _TYPES:
            types.append({"type": _TYPES[part]})
    return types[0] if len(types) == 1 else {"anyOf": types}


def _both(name: str, conflict: Conflict, group: type) -> dict[str, Any]:
    """Return the schema of an object with two conflicting options."""
    defaults = defaults_of(group)
    free = [_plain(value) for value in (defaults[conflict.other], *conflict.unless)]
    theirs: dict[str, Any] = {"not": {"enum": free}}
    if conflict.values:
        theirs = {"enum": [_plain(value) for value in conflict.values]}
    mine: dict[str, Any] = {"not": {"enum": [_plain(defaults[name])]}}
    if conflict.mine:
        mine = {"enum": [_plain(value) for value in conflict.mine]}
    return {
        "properties": {name: mine, conflict.other: theirs},
        "required": [name, conflict.other],
        "description": conflict.why,
    }


def _plain(value: Any) -> Any:
    """Return a value as JSON represents it."""
    if isinstance(value, tuple):
        return list(value)
    return str(value) if hasattr(value, "value") else value


def conflicts(group: type) -> list[tuple[str, str, str]]:
    """Return the conflicts of ``group`` as rows: an option, the other one, and why."""
    described, defaults = options_of(group), defaults_of(group)
    rows = []
    for name, one in described.items():
        for conflict in conflicts_of(group, name):
            other = described[conflict.other]
            free = (defaults[conflict.other], *conflict.unless)
            theirs = _named(other, conflict.values, free)
            mine = _named(one, conflict.mine, (defaults[name],))
            rows.append((theirs, mine, conflict.why))
    return rows


def _named(one: Option, values: Sequence[Any], free: Sequence[Any]) -> str:
    """Return the option with ``values``, or with all its values that are not in ``free``."""
    meant = values or ["N"] * one.numbers + [word for word in one.choices if word not in free]
    return ", ".join(f"`{spelled(one, value)}`" for value in meant) or f"`{one.name}`"
