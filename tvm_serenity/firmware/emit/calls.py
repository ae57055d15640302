"""A program's kernel calls as C: a list of calls, or tables and the walker that follows them.

If every step runs once, each call is a line: a line is smaller than the table entries would be,
and needs no lookup. If steps run several times, in bands of rows, the sequence of calls is a table,
and each step is a function of the row.
"""

from dataclasses import dataclass
from typing import Any

from tvm_serenity.firmware.emit import walker
from tvm_serenity.firmware.emit.arguments import call, first, first_shown, fixed
from tvm_serenity.firmware.emit.table import tables
from tvm_serenity.firmware.emit.transfers import Port
from tvm_serenity.firmware.program import Program
from tvm_serenity.firmware.trace import steps


@dataclass(frozen=True)
class Calls:
    """The kernel calls of a program: C ``definitions``, and the lines of the function ``run``.

    If the input arrives row by row, ``definitions`` hold a function ``feed(row)`` that takes a row,
    and ``body`` the lines of ``restart``, which discard the rows taken so far.
    """

    definitions: str
    body: tuple[str, ...]


def calls(program: Program, external: bool) -> Calls:
    """Return the calls of ``program``; ``external``: the caller provides the arenas."""
    if program.straight:
        return Calls("", tuple(_lines(program, external)))
    return Calls(walker.definitions(program, external), walker.body(program, external))


def about(program: Program) -> dict[str, Any]:
    """Return the entries of ``metadata.json`` about steps, operators and rows."""
    if program.straight:
        return {"steps": steps(program), "operators": _operators(program)}
    rows = {
        "bands": [bands.together for bands in program.bands],
        "streamed": program.fed is not None,
        "calls": len(program.calls),
        "table_bytes": tables(program).size_bytes,
    }
    return {"steps": steps(program), "operators": _operators(program), "rows": rows}


def _lines(program: Program, external: bool) -> list[str]:
    lines: list[str] = []
    port = Port(program, external) if program.transfers else None
    for number, (index, _) in enumerate(program.calls):
        lines += port.before(number) if port else []
        step = program.steps[index]
        name = step.kernels[step.variants[0]]
        pairs = zip(step.arguments, program.kernel[name].params, strict=True)
        passed = [
            fixed(program, a, p.dtype, external, p.readonly)
            or first(program, step, a, p.dtype, external)
            for a, p in pairs
        ]
        written = ", ".join(program.tensors[t].name for t in step.writes)
        lines += [f"/* {number}: {written} */", call(program, name, passed)]
        lines += first_shown(program, step, external)
        lines += port.after() if port else []
    lines += port.before(len(program.calls)) if port else []
    return [f"    {line}" for line in lines]


def _operators(program: Program) -> list[dict[str, Any]]:
    """Return each step once: its kernels, the tensors it writes, and the first of their names.

    ``copies``: it copies rows between memories.
    """
    return [
        {
            "name": program.tensors[step.writes[0]].name if step.writes else "",
            "kernels": list(step.kernels),
            "writes": list(step.writes),
            "copies": step.copies,
        }
        for step in program.steps
    ]
