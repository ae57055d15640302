"""What ``serenity compile -o`` wrote, loaded: not on a machine that lacks instructions it uses."""

import json
from pathlib import Path
from typing import Any

import tvm
from tvm import relax

from tvm_serenity.errors import InputError
from tvm_serenity.tvm_targets import check_runs_here

LIBRARY, REPORT = "lib.so", "report.json"


def load(folder: str | Path) -> Any:
    """Return the Relax VM of a folder that ``serenity compile -o`` made.

    Raises :class:`InputError` where it is none, :class:`UnsupportedError` where the library was
    made for another architecture, or for instructions that this machine lacks: it would end with
    an illegal instruction.
    """
    library, report = Path(folder) / LIBRARY, Path(folder) / REPORT
    try:
        needs = json.loads(report.read_text(encoding="utf-8"))["needs"]
        wanted = str(needs["architecture"]), [str(name) for name in needs["instructions"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{report}: is no report of serenity compile") from None
    if not library.exists():
        raise InputError(f"{library}: is not there")
    check_runs_here(str(library), *wanted)
    return relax.VirtualMachine(tvm.runtime.load_module(str(library)), tvm.cpu())
