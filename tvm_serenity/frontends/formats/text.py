"""The text form of graphs, whose operators cannot be compiled."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tvm_serenity.frontends.formats.record import Format

if TYPE_CHECKING:
    from tvm_serenity.frontends.text_file import TextFile


def _read(path: Path, data: bytes, _dims: Mapping[str, int]) -> "TextFile":
    from tvm_serenity.frontends import text_file

    return text_file.read(path, data)


FORMAT = Format(
    name="text",
    title="graph in text form",
    suffixes=(".txt", ".graph"),
    read=_read,
    no_sizes="the text form has no named dimensions; omit --dim",
)
