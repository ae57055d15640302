"""The output folder of ``serenity compile -o``: writing, and loading on a suitable machine."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tvm
from tvm import relax

from tvm_serenity.errors import InputError
from tvm_serenity.relax.compiled import Built
from tvm_serenity.runtime.bytecode import Bytecode
from tvm_serenity.tvm_targets import architecture, check_runs_here, instructions

LIBRARY, REPORT = "lib.so", "report.json"
BYTECODE, CONSTANTS = "bytecode.json", "constants.bin"


def needs(target: tvm.target.Target) -> dict[str, Any]:
    """Return the processor features that a library for ``target`` needs, in words."""
    return {"architecture": architecture(target), "instructions": list(instructions(target))}


def write(
    built: Built,
    folder: Path,
    report: Mapping[str, Any],
    one_file: bool = False,
) -> None:
    """Write a build into ``folder``: kernels, instructions and constants, one file each.

    ``report`` gets the entry ``needs``. ``one_file``: embed constants and instructions in the
    library, which plain TVM can load (TVM copies the constants).
    """
    (folder / REPORT).write_text(json.dumps(report, indent=2) + "\n")
    if one_file:
        built.export(folder / LIBRARY)
        return
    found, tensors = Bytecode.of(built.executable, folder)
    built.export_kernels(folder / LIBRARY)
    (folder / CONSTANTS).write_bytes(tensors)
    (folder / BYTECODE).write_text(json.dumps(vars(found)) + "\n")


def load(folder: str | Path) -> Any:
    """Return the Relax VM of a folder that ``serenity compile -o`` wrote.

    Constants are mapped into memory, not read; their file must not change while the VM lives.
    Raises :class:`InputError` if the folder is no such output, :class:`UnsupportedError` if the
    library needs another architecture or instructions that this machine lacks (the process would
    die of an illegal instruction).
    """
    library, report = Path(folder) / LIBRARY, Path(folder) / REPORT
    try:
        needed = json.loads(report.read_text(encoding="utf-8"))["needs"]
        wanted = str(needed["architecture"]), [str(name) for name in needed["instructions"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{report}: not a report of serenity compile") from None
    if not library.exists():
        raise InputError(f"{library}: the file does not exist")
    check_runs_here(str(library), *wanted)
    return relax.VirtualMachine(_executable(Path(folder)), tvm.cpu())


def _executable(folder: Path) -> Any:
    """Return the VM's executable; a one-file library is the executable itself."""
    loaded = tvm.runtime.load_module(str(folder / LIBRARY))
    bytecode, constants = folder / BYTECODE, folder / CONSTANTS
    if not bytecode.exists():
        return loaded
    if not constants.exists():
        raise InputError(f"{constants}: the file does not exist")
    try:
        found = Bytecode(**json.loads(bytecode.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        raise InputError(f"{bytecode}: not a file written by serenity compile") from None
    return found.executable(constants, loaded)
