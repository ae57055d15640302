"""What ``serenity compile -o`` writes, and loading it where its instructions are."""

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
    """Return what a processor must have to run a library for ``target``, as reports say it."""
    return {"architecture": architecture(target), "instructions": list(instructions(target))}


def write(
    built: Built,
    folder: Path,
    report: Mapping[str, Any],
    one_file: bool = False,
) -> None:
    """Write what was built into ``folder``: kernels, instructions and constants in a file each.

    ``report``: with ``needs``. ``one_file``: constants and instructions lie in the library, which
    TVM alone loads then (it copies the constants).
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
    """Return the Relax VM of a folder that ``serenity compile -o`` made.

    Constants are mapped into memory, not read: their file stays as it is while the VM lives.
    Raises :class:`InputError` where it is none, :class:`UnsupportedError` where the library was
    made for another architecture, or for instructions that this machine lacks: it would end with
    an illegal instruction.
    """
    library, report = Path(folder) / LIBRARY, Path(folder) / REPORT
    try:
        needed = json.loads(report.read_text(encoding="utf-8"))["needs"]
        wanted = str(needed["architecture"]), [str(name) for name in needed["instructions"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{report}: is no report of serenity compile") from None
    if not library.exists():
        raise InputError(f"{library}: is not there")
    check_runs_here(str(library), *wanted)
    return relax.VirtualMachine(_executable(Path(folder)), tvm.cpu())


def _executable(folder: Path) -> Any:
    """What the virtual machine runs; a library of one file is that itself."""
    loaded = tvm.runtime.load_module(str(folder / LIBRARY))
    bytecode, constants = folder / BYTECODE, folder / CONSTANTS
    if not bytecode.exists():
        return loaded
    if not constants.exists():
        raise InputError(f"{constants}: is not there")
    try:
        found = Bytecode(**json.loads(bytecode.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        raise InputError(f"{bytecode}: is not what serenity compile wrote") from None
    return found.executable(constants, loaded)
