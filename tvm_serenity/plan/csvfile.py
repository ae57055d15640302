"""Buffers as CSV: ``id,lower,upper,size[,alignment][,offset]``, MiniMalloc's columns."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tvm_serenity.errors import InputError, ParseError
from tvm_serenity.files import write_bytes
from tvm_serenity.plan.buffers import Buffer

MAX_FILE_BYTES = 1 << 30
MAX_FIELD_CHARACTERS = 4096
_NEEDED = ("id", "lower", "upper", "size")
_ALIASES = {"start": "lower", "end": "upper", "buffer": "id", "buffer_id": "id"}


def read_csv(path: str | Path) -> tuple[Buffer, ...]:
    """The buffers of a file, in its order.

    An empty ``offset`` is free, an empty ``alignment`` is 1; unknown columns are skipped. Raises
    :class:`ParseError` naming the file and the line.
    """
    buffers = []
    for line, row in _rows(Path(path)):
        try:
            buffers.append(_buffer(row))
        except InputError as error:
            raise ParseError(f"{path}, line {line}: {error}") from None
    return tuple(buffers)


def write_csv(
    path: str | Path,
    buffers: Sequence[Buffer],
    offsets: Sequence[int],
    source: str | Path | None = None,
) -> None:
    """Writes the buffers with their ``offset``, to a temporary file that is renamed at the end.

    With ``source``, the file the buffers were read from, its columns are all kept, in its order.
    """
    if len(buffers) != len(offsets):
        raise InputError(f"{len(buffers)} buffers have {len(offsets)} offsets")
    if source is None:
        rows = [_plain(buffer) for buffer in buffers]
    else:
        rows = [dict(row) for _, row in _rows(Path(source), renamed=False)]
    if len(rows) != len(buffers):
        raise InputError(f"{source}: holds {len(rows)} buffers, not {len(buffers)}")
    for row, offset in zip(rows, offsets, strict=True):
        row["offset"] = str(offset)
    header = list(rows[0]) if rows else [*_NEEDED, "offset"]
    _write(Path(path), header, rows)


def _plain(buffer: Buffer) -> dict[str, str]:
    values = (buffer.name, buffer.lower, buffer.upper, buffer.size_bytes, buffer.alignment)
    return dict(zip((*_NEEDED, "alignment"), map(str, values), strict=True))


def _rows(path: Path, renamed: bool = True) -> Iterator[tuple[int, Mapping[str, str]]]:
    """The data lines with their numbers, as column -> text."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ParseError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
        with path.open(newline="", encoding="utf-8-sig") as file:
            yield from _parse(path, csv.reader(file, strict=True), renamed)
    except OSError as error:
        raise ParseError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ParseError(f"{path}: not a text file in UTF-8") from None


def _parse(
    path: Path, reader: Iterator[list[str]], renamed: bool
) -> Iterator[tuple[int, Mapping[str, str]]]:
    header: list[str] = []
    line = 0
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise ParseError(f"{path}, line {line + 1}: {error}") from None
        if row is None:
            break
        line = reader.line_num  # type: ignore[attr-defined]
        if not any(cell.strip() for cell in row):
            continue
        if any(len(cell) > MAX_FIELD_CHARACTERS for cell in row):
            raise ParseError(f"{path}, line {line}: a field of over {MAX_FIELD_CHARACTERS} letters")
        if not header:
            header = _header(path, line, [cell.strip() for cell in row], renamed)
        elif len(row) != len(header):
            raise ParseError(
                f"{path}, line {line}: {len(row)} fields, the header has {len(header)}"
            )
        else:
            yield line, dict(zip(header, (cell.strip() for cell in row), strict=True))
    if not header:
        raise ParseError(f"{path}: no header, expected {','.join(_NEEDED)}[,alignment][,offset]")


def _header(path: Path, line: int, cells: list[str], renamed: bool) -> list[str]:
    names = [_ALIASES.get(cell.lower(), cell.lower()) for cell in cells]
    for needed in _NEEDED:
        if names.count(needed) != 1:
            raise ParseError(
                f"{path}, line {line}: column {needed!r} is there {names.count(needed)} times; "
                f"expected {','.join(_NEEDED)}[,alignment][,offset]"
            )
    if len(set(names)) != len(names):
        raise ParseError(f"{path}, line {line}: a column is listed twice")
    return names if renamed else cells


def _buffer(row: Mapping[str, str]) -> Buffer:
    return Buffer(
        name=row["id"],
        lower=_integer(row, "lower"),
        upper=_integer(row, "upper"),
        size_bytes=_integer(row, "size"),
        alignment=_integer(row, "alignment") if row.get("alignment") else 1,
        offset=_integer(row, "offset") if row.get("offset") else None,
    )


def _integer(row: Mapping[str, str], column: str) -> int:
    text = row[column]
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        raise InputError(f"column {column!r}: {text[:40]!r} is not a whole number")
    return int(text)


def _write(path: Path, header: Sequence[str], rows: Sequence[Mapping[str, str]]) -> None:
    """Whole file or no file."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, header, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_bytes(path, text.getvalue().encode())
