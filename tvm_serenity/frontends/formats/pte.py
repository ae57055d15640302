"""``.pte`` files: ExecuTorch programs, read for their planned memory."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tvm_serenity.frontends.formats.record import Format

if TYPE_CHECKING:
    from tvm_serenity.frontends.pte_file import Allocated, PteFile


def _read(path: Path, data: bytes, _dims: Mapping[str, int]) -> "PteFile":
    from tvm_serenity.frontends import pte_file

    return pte_file.read(path, data)


def _allocated(model: "PteFile") -> "Allocated":
    return model.allocated


FORMAT = Format(
    name="pte",
    title="ExecuTorch",
    suffixes=(".pte",),
    magic=(4, b"ET12"),
    read=_read,
    no_sizes="a .pte file has no named dimensions; omit --dim",
    written=False,
    allocated=_allocated,
)
