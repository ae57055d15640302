"""A group of options as JSON Schema (draft 2020-12), and as rows of a table."""

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
    """Return the schema of an object that holds the options of ``group`` by their fields' names."""
    hints, defaults = get_type_hints(group), defaults_of(group)
    described = options_of(group)
    found = {
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
    return {**found, "allOf": refused} if refused else found


def _property(one: Option, hint: Any, default: Any) -> dict[str, Any]:
    found = {"description": one.help, "x-flag": one.name, "x-group": str(one.group)}
    if one.unit:
        found["x-unit"] = one.unit
    if default is not MISSING:
        found["default"] = _plain(default)
    return {**found, **_values(one, hint)}


def _values(one: Option, hint: Any) -> dict[str, Any]:
    """Which values a field takes."""
    limits = {"minimum": one.least, "maximum": one.most, "exclusiveMinimum": one.above}
    within = {word: limit for word, limit in limits.items() if limit is not None}
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    found: list[dict[str, Any]] = []
    for part in parts:
        if part is NoneType:
            found.append({"type": "null"})
        elif get_origin(part) is Mapping:
            found.append({"type": "object", "additionalProperties": {"type": "integer"}})
        elif get_origin(part) in (Sequence, tuple):
            found.append({"type": "array"})
        elif hasattr(part, "__members__"):
            found.append({"enum": [str(member) for member in part]})
        elif part is str and one.choices:
            found.append({"enum": list(one.choices)})
        elif part in (int, float):
            found.append({"type": _TYPES[part], **within})
        elif part in _TYPES:
            found.append({"type": _TYPES[part]})
    return found[0] if len(found) == 1 else {"anyOf": found}


def _both(name: str, conflict: Conflict, group: type) -> dict[str, Any]:
    """An object whose options do not go together."""
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
    """A value as JSON has it."""
    if isinstance(value, tuple):
        return list(value)
    return str(value) if hasattr(value, "value") else value


def conflicts(group: type) -> list[tuple[str, str, str]]:
    """Return what does not go together in ``group``: an option, the other one, and why."""
    described, defaults = options_of(group), defaults_of(group)
    found = []
    for name, one in described.items():
        for conflict in conflicts_of(group, name):
            other = described[conflict.other]
            free = (defaults[conflict.other], *conflict.unless)
            theirs = _named(other, conflict.values, free)
            mine = _named(one, conflict.mine, (defaults[name],))
            found.append((theirs, mine, conflict.why))
    return found


def _named(one: Option, values: Sequence[Any], free: Sequence[Any]) -> str:
    """The option with the values that are meant: ``values``, or all but those that are free."""
    meant = values or ["N"] * one.numbers + [word for word in one.choices if word not in free]
    return ", ".join(f"`{spelled(one, value)}`" for value in meant) or f"`{one.name}`"
