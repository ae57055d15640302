"""A program's calls as C: a list of them, or tables and what walks along them.

Where every step runs once its call is a line: that is less than its entries in tables would be, and
nothing is looked up. Where steps run several times, in bands of rows, the calls are a table, and
every step is a function of the row. What is written is a property of the program, not of who made
it.
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
    """How a program computes: C before its interface, and the lines that run everything.

    Of a program whose rows arrive ``definitions`` hold a function ``feed(row)`` that takes one in,
    and ``body`` are the lines that forget them.
    """

    definitions: str
    body: tuple[str, ...]


def calls(program: Program, external: bool) -> Calls:
    """Return the calls of ``program``; ``external``: in arenas that the caller provides."""
    if program.straight:
        return Calls("", tuple(_lines(program, external)))
    return Calls(walker.definitions(program, external), walker.body(program, external))


def about(program: Program) -> dict[str, Any]:
    """Return what ``metadata.json`` says of the calls: at least the ``steps``."""
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
        made = ", ".join(program.tensors[t].name for t in step.writes)
        lines += [f"/* {number}: {made} */", call(program, name, passed)]
        lines += first_shown(program, step, external)
        lines += port.after() if port else []
    lines += port.before(len(program.calls)) if port else []
    return [f"    {line}" for line in lines]


def _operators(program: Program) -> list[dict[str, Any]]:
    """Every step of the program once: its kernels, what it ``writes``, the first tensor of that."""
    return [
        {
            "name": program.tensors[step.writes[0]].name if step.writes else "",
            "kernels": list(step.kernels),
            "writes": list(step.writes),
        }
        for step in program.steps
    ]
