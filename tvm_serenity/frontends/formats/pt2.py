"""``.pt2`` files: programs of ``torch.export``."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_serenity.frontends.formats.record import Format

if TYPE_CHECKING:
    from tvm_serenity.frontends.program_file import ProgramFile
    from tvm_serenity.frontends.relax._converter import Integers


def _read(path: Path, data: bytes, _dims: Mapping[str, int]) -> "ProgramFile":
    from tvm_serenity.frontends import program_file

    return program_file.read(path, data)


def _to_relax(model: "ProgramFile", _dims: Mapping[str, int], _integers: "Integers") -> Any:
    from tvm_serenity.frontends.relax import from_torch

    return from_torch.convert(model.program)


FORMAT = Format(
    name="pt2",
    title="PyTorch",
    suffixes=(".pt2",),
    magic=(0, b"PK\x03\x04"),
    read=_read,
    no_sizes="the sizes of a PyTorch program are set when it is exported; omit --dim",
    to_relax=_to_relax,
    names_module=False,  # TVM's importer already uses the program's names
    runtime="torch",
    written=False,
)
