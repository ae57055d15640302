"""Options of custom operators: a checked reader of the scalars in a FlexBuffer map.

Layout: https://flatbuffers.dev/flexbuffers/. The last byte is the width of the root, the previous
one its type; offsets point backwards.
"""

import struct
from collections.abc import Mapping

from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.frontends._flatbuffer import Table
from tvm_serenity.frontends._tflite_schema import OperatorField

Scalar = int | float | bool

_INT, _UINT, _FLOAT, _INDIRECT_INT, _INDIRECT_FLOAT, _MAP, _BOOL = 1, 2, 3, 6, 8, 9, 26
_SIGNED = {1: "<b", 2: "<h", 4: "<i", 8: "<q"}
_REAL = {2: "<e", 4: "<f", 8: "<d"}


def flexible(data: bytes) -> Mapping[str, Scalar]:
    """Return the scalars of a map by key, without other values.

    Return an empty map for no bytes. Raises :class:`InputError` if the bytes are no map.
    """
    if not data:
        return {}
    try:
        return _map(data)
    except (struct.error, IndexError, KeyError, ValueError) as error:
        raise InputError(f"the options of a custom operator are corrupt ({error})") from None


def _map(data: bytes) -> dict[str, Scalar]:
    width, packed = data[-1], data[-2]
    if packed >> 2 != _MAP:
        raise ValueError("not a map")
    place = len(data) - 2 - width
    start, width = place - _unsigned(data, place, width), 1 << (packed & 3)
    size = _unsigned(data, start - width, width)
    keys = start - 3 * width - _unsigned(data, start - 3 * width, width)
    key_width = _unsigned(data, start - 2 * width, width)
    if size > len(data):
        raise ValueError("more values than bytes")
    found = {}
    for i in range(size):
        at = keys + i * key_width
        name = at - _unsigned(data, at, key_width)
        key = data[name : data.index(0, name)].decode()
        value = _scalar(data, start + i * width, width, data[start + size * width + i])
        if value is not None:
            found[key] = value
    return found


def _unsigned(data: bytes, place: int, width: int) -> int:
    if width not in _SIGNED or place < 0 or place + width > len(data):
        raise ValueError("an offset points outside of the options")
    return int.from_bytes(data[place : place + width], "little")


def _scalar(data: bytes, place: int, width: int, packed: int) -> Scalar | None:
    kind = packed >> 2
    if _INDIRECT_INT <= kind <= _INDIRECT_FLOAT:
        place, width = place - _unsigned(data, place, width), 1 << (packed & 3)
        kind -= _INDIRECT_INT - _INT
    if kind not in (_INT, _UINT, _FLOAT, _BOOL):
        return None
    number = _unsigned(data, place, width)
    if kind == _BOOL:
        return bool(number)
    if kind == _UINT:
        return number
    form = _SIGNED if kind == _INT else _REAL
    value: Scalar = struct.unpack_from(form[width], data, place)[0]
    return value


def custom_options(op: Table) -> bytes:
    """Return the bytes of an operator's custom options; empty if it has none."""
    if op.u64(OperatorField.LARGE_CUSTOM_OPTIONS_OFFSET) > 1:
        raise UnsupportedError(
            "its options are stored after the flatbuffer, which is not supported"
        )
    start, size = op.span(OperatorField.CUSTOM_OPTIONS, 1)
    return op.source.data[start : start + size]
