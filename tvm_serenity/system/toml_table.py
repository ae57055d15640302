"""Read a TOML table strictly: every key must be known, of its type and in its range."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm_serenity.errors import ParseError

MISSING = object()
MOST = 2**32 - 1


@dataclass(frozen=True)
class TomlTable:
    """A table of the file ``where``; errors name it ``name``."""

    where: str
    name: str
    data: Mapping[str, Any]

    def only(self, *keys: str) -> "TomlTable":
        """Return the table; raise :class:`ParseError` if it has a key that is not in ``keys``."""
        for key in self.data:
            if key not in keys:
                raise self.error(f"unknown key {key!r}; the known keys are {', '.join(keys)}")
        return self

    def error(self, reason: str) -> ParseError:
        """Return a :class:`ParseError` that names the file and table and gives the ``reason``."""
        name = f" [{self.name}]:" if self.name else ""
        return ParseError(f"{self.where}:{name} {reason}")

    def get(self, key: str, kind: type, default: Any = MISSING) -> Any:
        """Return the value of ``key``, which must be of type ``kind``."""
        value = self.data.get(key, default)
        if value is MISSING:
            raise self.error(f"{key!r} is missing")
        if value is default:
            return value
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise self.error(f"{key!r} is {value!r}; expected a value of type {kind.__name__}")
        return value

    def text(self, key: str, default: Any = MISSING) -> str:
        """Return a string, which must not be empty unless that is the default."""
        value = str(self.get(key, str, default))
        if not value and default is MISSING:
            raise self.error(f"{key!r} is empty; write a value")
        return value

    def number(self, key: str, default: Any = MISSING, least: int = 0, most: int = MOST) -> int:
        """Return an integer in ``least..most``."""
        value = int(self.get(key, int, default))
        if value != default and not least <= value <= most:
            raise self.error(f"{key!r} is {value}; expected {least} to {most}")
        return value

    def flag(self, key: str, default: Any = MISSING) -> bool:
        """Return a boolean."""
        return bool(self.get(key, bool, default))

    def choice(self, key: str, allowed: Sequence[str]) -> str:
        """Return one of the ``allowed`` words."""
        value = self.text(key)
        if value not in allowed:
            raise self.error(f"{key!r} is {value!r}; choose one of {', '.join(allowed)}")
        return value

    def pair(self, key: str, most: int) -> tuple[int, int]:
        """Return two integers, the first not above the second."""
        value = self.get(key, list)
        if (
            len(value) != 2
            or any(isinstance(v, bool) or not isinstance(v, int) for v in value)
            or not 0 <= value[0] <= value[1] <= most
        ):
            raise self.error(f"{key!r} must be two integers [least, most] from 0 to {most}")
        return value[0], value[1]

    def table(self, key: str) -> "TomlTable | None":
        """Return the table ``key``, or None if it is missing."""
        if key not in self.data:
            return None
        return TomlTable(self.where, f"{self.name}.{key}".lstrip("."), self.get(key, dict))

    def tables(self, key: str) -> tuple["TomlTable", ...]:
        """Return the tables of the list ``key``; none if it is missing."""
        name = f"{self.name}.{key}".lstrip(".")
        listed = self.get(key, list, [])
        if not all(isinstance(t, dict) for t in listed):
            raise self.error(f"{key!r} must be a list of tables")
        return tuple(TomlTable(self.where, name, t) for t in listed)
