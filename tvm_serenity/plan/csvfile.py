"""Reads and writes buffers as CSV, with the columns of MiniMalloc.

The columns are ``id,lower,upper,size[,alignment][,offset]``. Files are read in blocks, which are
converted to columns. A block with an unusual row is read row by row, so that an error can name the
line.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np

from tvm_serenity.errors import InputError, ParseError
from tvm_serenity.graph.arrays import Ints
from tvm_serenity.plan.buffers import Buffer
from tvm_serenity.plan.columns import BufferColumns, FreeBuffers, joined
from tvm_serenity.system.files import check_regular, write_bytes

MAX_FILE_BYTES = 1 << 30
MAX_FIELD_CHARACTERS = 4096
BLOCK_ROWS = 20_000
_NEEDED = ("id", "lower", "upper", "size")
_ALIASES = {"start": "lower", "end": "upper", "buffer": "id", "buffer_id": "id"}
_INTEGERS = re.compile(r"(?:-?[0-9]{1,18},)*")
"""Integers that fit 64 bits, each followed by a comma."""

Row = tuple[int, list[str]]
"""The number of the row's last line in the file, and the row's cells."""


def read_csv(path: str | Path) -> Sequence[Buffer]:
    """Return the buffers of a file, in order; as :class:`FreeBuffers` if no offset is fixed.

    A buffer with an empty ``offset`` has no fixed offset. An empty ``alignment`` means 1. Unknown
    columns are ignored. Raises :class:`ParseError`, which names the file and the line.
    """
    rows = _rows(Path(path))
    place = {name: at for at, name in enumerate(_names(next(rows)[1]))}
    parts: list[Sequence[Buffer]] = []
    while block := list(islice(rows, BLOCK_ROWS)):
        parts.append(_free(place, block) or _one_by_one(path, place, block))
    free = [part for part in parts if isinstance(part, FreeBuffers)]
    return joined(free) if len(free) == len(parts) else tuple(chain.from_iterable(parts))


def write_csv(
    path: str | Path,
    buffers: Sequence[Buffer],
    offsets: Sequence[int],
    source: str | Path | None = None,
) -> None:
    """Write the buffers with their offsets to ``path`` atomically.

    ``source``: the file from which the buffers were read; its columns and their order are kept.
    """
    if len(buffers) != len(offsets):
        raise InputError(
            f"{path}: there are {len(offsets)} offsets for {len(buffers)} buffers; give one offset "
            "per buffer"
        )
    if source is None:
        header, rows = [*_NEEDED, "alignment"], _cells(buffers)
    else:
        (_, header), *table = _rows(Path(source))
        rows = [cells for _, cells in table]
    if len(rows) != len(buffers):
        raise InputError(
            f"{source}: the file has {len(rows)} buffers, but {len(buffers)} are to be written; "
            "pass the file from which they were read"
        )
    lowered = [cell.lower() for cell in header]
    at = lowered.index("offset") if "offset" in lowered else len(header)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*header[:at], *(header[at : at + 1] or ["offset"]), *header[at + 1 :]])
    writer.writerows(
        [*row[:at], offset, *row[at + 1 :]] for row, offset in zip(rows, offsets, strict=True)
    )
    write_bytes(path, text.getvalue().encode())


def _cells(buffers: Sequence[Buffer]) -> list[Sequence[object]]:
    """Return the required columns and the alignments, row by row."""
    held = BufferColumns.of(buffers)
    numbers = (held.lower, held.upper, held.size_bytes, held.alignment)
    return list(zip(held.name, *(column.tolist() for column in numbers), strict=True))


def _rows(path: Path) -> Iterator[Row]:
    """Yield the header, then the rows, with stripped cells.

    Raises :class:`ParseError` if a row is not as long as the header.
    """
    try:
        check_regular(path, MAX_FILE_BYTES)
        with path.open(newline="", encoding="utf-8-sig") as file:
            yield from _parse(path, csv.reader(file, strict=True))
    except OSError as error:
        raise ParseError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ParseError(f"{path}: the file is not text in UTF-8") from None


def _parse(path: Path, reader: Iterator[list[str]]) -> Iterator[Row]:
    fields, line = 0, 0
    try:
        for row in reader:
            line = reader.line_num  # type: ignore[attr-defined]
            cells = list(map(str.strip, row))
            if not any(cells):
                continue
            if max(map(len, row)) > MAX_FIELD_CHARACTERS:
                reason = f"a field is longer than {MAX_FIELD_CHARACTERS} characters"
                raise ParseError(f"{path}, line {line}: {reason}")
            if not fields:
                _check_header(path, line, _names(cells))
                fields = len(cells)
            elif len(cells) != fields:
                reason = f"the row has {len(cells)} fields, but the header has {fields}"
                raise ParseError(f"{path}, line {line}: {reason}")
            yield line, cells
    except csv.Error as error:
        raise ParseError(f"{path}, line {line + 1}: {error}") from None
    if not fields:
        raise ParseError(
            f"{path}: the file has no header; expected {','.join(_NEEDED)}[,alignment][,offset]"
        )


def _names(header: Sequence[str]) -> list[str]:
    """Return the column names of ``header``, with aliases replaced by MiniMalloc's names."""
    return [_ALIASES.get(cell.lower(), cell.lower()) for cell in header]


def _check_header(path: Path, line: int, names: Sequence[str]) -> None:
    for needed in _NEEDED:
        if names.count(needed) != 1:
            raise ParseError(
                f"{path}, line {line}: the header lists column {needed!r} "
                f"{names.count(needed)} times; "
                f"expected {','.join(_NEEDED)}[,alignment][,offset]"
            )
    if len(set(names)) != len(names):
        raise ParseError(f"{path}, line {line}: the header lists a column twice")


def _free(place: Mapping[str, int], rows: Sequence[Row]) -> FreeBuffers | None:
    """Return the buffers of ``rows`` as columns, or None if a row is unusual or invalid."""
    columns = list(zip(*(cells for _, cells in rows), strict=True))
    if "offset" in place and any(columns[place["offset"]]):
        return None
    steps = [cell or "1" for cell in columns[place["alignment"]]] if "alignment" in place else None
    numbers = [_integers(columns[place[name]]) for name in ("lower", "upper", "size")]
    numbers.append(np.ones(len(rows), dtype=np.int64) if steps is None else _integers(steps))
    try:
        columns_read = [column for column in numbers if column is not None]
        return (
            FreeBuffers(BufferColumns(columns[place["id"]], *columns_read))
            if len(columns_read) == 4
            else None
        )
    except InputError:
        return None


def _integers(texts: Sequence[str]) -> Ints | None:
    if not _INTEGERS.fullmatch(",".join(texts) + ","):
        return None
    return np.fromiter(map(int, texts), dtype=np.int64, count=len(texts))


def _one_by_one(
    path: str | Path, place: Mapping[str, int], rows: Sequence[Row]
) -> tuple[Buffer, ...]:
    buffers = []
    for line, cells in rows:
        try:
            buffers.append(_buffer({name: cells[at] for name, at in place.items()}))
        except InputError as error:
            raise ParseError(f"{path}, line {line}: {error}") from None
    return tuple(buffers)


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
