"""Reading a TOML table strictly: every key is known, of its type and in its range."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm_serenity.errors import ParseError

MISSING = object()
MOST = 2**32 - 1


@dataclass(frozen=True)
class TomlTable:
    """One table of the file ``where``, called ``name`` in errors."""

    where: str
    name: str
    data: Mapping[str, Any]

    def only(self, *keys: str) -> "TomlTable":
        """Return the table itself; :class:`ParseError` where it has another key."""
        for key in self.data:
            if key not in keys:
                raise self.error(f"unknown key {key!r}; there are {', '.join(keys)}")
        return self

    def error(self, what: str) -> ParseError:
        """Return the error that says ``what`` is wrong here."""
        name = f" [{self.name}]:" if self.name else ""
        return ParseError(f"{self.where}:{name} {what}")

    def get(self, key: str, kind: type, default: Any = MISSING) -> Any:
        """Return the value of ``key``, of type ``kind``."""
        value = self.data.get(key, default)
        if value is MISSING:
            raise self.error(f"{key!r} is missing")
        if value is default:
            return value
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise self.error(f"{key!r} is not of type {kind.__name__}")
        return value

    def text(self, key: str, default: Any = MISSING) -> str:
        """Return a string that is not empty, unless that is the default."""
        found = str(self.get(key, str, default))
        if not found and default is MISSING:
            raise self.error(f"{key!r} is empty")
        return found

    def number(self, key: str, default: Any = MISSING, least: int = 0, most: int = MOST) -> int:
        """Return a whole number in ``least..most``."""
        value = int(self.get(key, int, default))
        if value != default and not least <= value <= most:
            raise self.error(f"{key!r} is {value}, not in {least}..{most}")
        return value

    def flag(self, key: str, default: Any = MISSING) -> bool:
        """Return true or false."""
        return bool(self.get(key, bool, default))

    def choice(self, key: str, allowed: Sequence[str]) -> str:
        """Return one of the words that are ``allowed``."""
        value = self.text(key)
        if value not in allowed:
            raise self.error(f"{key!r} is {value!r}; there are {', '.join(allowed)}")
        return value

    def pair(self, key: str, most: int) -> tuple[int, int]:
        """Return two whole numbers, the first not above the second."""
        value = self.get(key, list)
        if (
            len(value) != 2
            or any(isinstance(v, bool) or not isinstance(v, int) for v in value)
            or not 0 <= value[0] <= value[1] <= most
        ):
            raise self.error(f"{key!r} is not [least, most] in 0..{most}")
        return value[0], value[1]

    def table(self, key: str) -> "TomlTable | None":
        """Return the table ``key``, or None where there is none."""
        if key not in self.data:
            return None
        return TomlTable(self.where, f"{self.name}.{key}".lstrip("."), self.get(key, dict))

    def tables(self, key: str) -> tuple["TomlTable", ...]:
        """Return the tables of the list ``key``, none where it is missing."""
        name = f"{self.name}.{key}".lstrip(".")
        found = self.get(key, list, [])
        if not all(isinstance(t, dict) for t in found):
            raise self.error(f"{key!r} is a list of tables")
        return tuple(TomlTable(self.where, name, t) for t in found)
