"""The integers of a kernel, marked in its C: a program has literals, a kernel set a table.

A kernel's body holds each integer of its layer (shapes, strides, multipliers, zero points) as a
mark. :func:`plain` writes the literals. :func:`template` writes elements of an array
:data:`INTEGERS` instead, so that one C function serves all layers that differ in integers alone.
"""

import re
import struct
from dataclasses import dataclass

from tvm_serenity.firmware.c_names import C_TYPES

INTEGERS = "integers"
"""The C name of the array that a template reads its integers from."""
STATIC = "«static const»"
"""A mark: the storage of a record of constants. A template fills the record in each call."""
_EXTENT, _REAL = "extent", "float32"
_MARK = re.compile("«(?:static const|(=?)([a-z0-9]+):(-?[0-9]+)(?::([^»]*))?)»")
_LEAST, _MOST = -(1 << 31), (1 << 31) - 1


def integer(value: int, dtype: str = "int32", one: bool = False) -> str:
    """Return the mark of an integer of the C type of ``dtype``; its literal beyond 32 bits.

    ``one``: equal marks are one element of a template's integers, so that the compiler knows that
    they are equal. Then a layer where they differ has another template.
    """
    if not _LEAST <= value <= _MOST:
        return literal(value, dtype)
    return f"«{'=' * one}{dtype}:{value}»"


def real(value: float, text: str) -> str:
    """Return the mark of a float32, whose C literal is ``text``; a template has its bits."""
    (bits,) = struct.unpack("<i", struct.pack("<f", value))
    return f"«={_REAL}:{bits}:{text}»"


def extent(value: int) -> str:
    """Return the mark of the number of elements of a local array."""
    return f"«{_EXTENT}:{int(value)}»"


def literal(value: int, dtype: str) -> str:
    """Return an integer as an exact C literal of the type of ``dtype``."""
    if dtype == "int64":
        return "INT64_MIN" if value == -(1 << 63) else f"INT64_C({value})"
    if dtype == "int32":
        return "INT32_MIN" if value == _LEAST else f"{value}"
    return f"UINT{dtype[4:]}_C({value})" if dtype in ("uint32", "uint64") else f"{value}"


def plain(body: str) -> str:
    """Return the C of ``body`` for its one layer: marks are literals."""

    def written(mark: re.Match[str]) -> str:
        _, kind, value, text = mark.groups()
        return "static const" if kind is None else text or literal(int(value), kind)

    return _MARK.sub(written, body)


@dataclass(frozen=True)
class Template:
    """A kernel's C without the integers of a layer.

    ``text`` reads element i of ``integers`` from the array :data:`INTEGERS`. It has ``{i}`` for
    element i of ``extents``, the number of elements of a local array, and doubled braces.
    """

    text: str
    integers: tuple[int, ...]
    extents: tuple[int, ...]


def template(body: str) -> Template:
    """Return the template of a kernel's body, and the integers of its layer."""
    integers: list[int] = []
    extents: list[int] = []
    known: dict[str, int] = {}

    def written(mark: re.Match[str]) -> str:
        one, kind, value, _ = mark.groups()
        if kind is None:
            return "const"
        if kind == _EXTENT:
            extents.append(int(value))
            return f"\0{len(extents) - 1}\1"
        at = known.get(value) if one else None
        if at is None:
            at = known[value] = len(integers)
            integers.append(int(value))
        element = f"{INTEGERS}[{at}]"
        if kind == _REAL:
            return f"f32_of_bits((uint32_t){element})"
        return element if kind == "int32" else f"(({C_TYPES[kind]}){element})"

    text = _MARK.sub(written, body).replace("{", "{{").replace("}", "}}")
    text = text.replace("\0", "{").replace("\1", "}")
    return Template(text, tuple(integers), tuple(extents))
