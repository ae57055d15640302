"""``model.c``: how a program's interface copies inputs and outputs around its calls.

The calls are written by ``emit.steps`` (one after the other) or ``firmware.rows.model`` (a table
that is walked).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_serenity.firmware.emit import header
from tvm_serenity.firmware.emit.c import C_TYPES, arenas, banner, file, join, symbol
from tvm_serenity.firmware.program import Place, Program

INVALID = -1
"""What ``run`` returns where a pointer is missing."""


@dataclass(frozen=True)
class Calls:
    """How a program computes: C before its interface, and the lines that run everything.

    Of a program whose rows arrive ``definitions`` hold a function ``feed(row)`` that takes one in,
    and ``body`` are the lines that forget them. ``about`` is what ``metadata.json`` says of the
    calls: at least the ``steps``, each with the tensors it ``writes``.
    """

    definitions: str
    body: tuple[str, ...]
    about: Mapping[str, Any]


def source(program: Program, calls: Calls, external: bool) -> str:
    """Return ``model.c``."""
    return join(
        [
            banner(program, "its calls in order")
            + f'#include "{file(program, "model.h")}"\n\n#include <stddef.h>\n#include <string.h>\n'
            f'\n#include "{file(program, "kernels.h")}"\n#include "{file(program, "weights.h")}"\n',
            "" if external else arenas(program),
            _trace(program),
            calls.definitions,
            _accessors(program, external),
            (_run if program.fed is None else _feed)(program, calls, external),
        ]
    )


def base(region: str, external: bool) -> str:
    """Return where a region's arena begins, in C."""
    return f"arenas->{region}" if external else f"arena_{region}"


def pointer(program: Program, place: Place, dtype: str, external: bool, const: bool) -> str:
    """Return a place in memory as a pointer to ``dtype``, in C."""
    at = base(place.region, external)
    if place.offset_bytes:
        at = f"({at} + {place.offset_bytes})"
    if dtype == "uint8":
        return at
    return f"({'const ' if const else ''}{C_TYPES[dtype]} *)(void *){at}"


def _trace(program: Program) -> str:
    call = symbol(program, "trace")
    return (
        "/* With SERENITY_TRACE every tensor is shown to the caller when it is complete. */\n"
        "#if defined(SERENITY_TRACE)\n"
        f"void {call}(uint32_t tensor, const void *data, uint32_t size);\n"
        f"#define TRACE(tensor, data, size) {call}(tensor, data, size)\n"
        "#else\n#define TRACE(tensor, data, size) ((void)0)\n#endif\n"
    )


def _accessors(program: Program, external: bool) -> str:
    parts = []
    for role, tensors in (("input", program.inputs), ("output", program.outputs)):
        for t in tensors:
            at = pointer(program, program.places[t], program.tensors[t].dtype, external, False)
            head = header.accessor_head(program, role, t, external)
            parts.append(f"{head} {{ return {at}; }}")
    return "\n\n".join(parts)


def _missing(program: Program, external: bool, *others: str) -> str:
    """The condition under which an argument is missing."""
    missing = [f"{name} == NULL" for name in others]
    if external:
        missing = ["arenas == NULL", *missing]
        missing += [f"arenas->{r} == NULL" for r, size in program.arena_bytes.items() if size]
    return " || ".join(missing)


def _run(program: Program, calls: Calls, external: bool) -> str:
    lines = [
        header.run_head(program, external),
        "{",
        f"    if ({_missing(program, external, 'inputs', 'outputs')}) {{",
        f"        return {INVALID};",
        "    }",
    ]
    alone = "arenas" if external else ""
    for t in program.inputs:
        tensor = program.tensors[t]
        inside = f"{symbol(program, f'input_{tensor.name}')}({alone})"
        lines += [
            f"    if (inputs->{tensor.name} != NULL && inputs->{tensor.name} != {inside}) {{",
            f"        (void)memcpy({inside}, inputs->{tensor.name}, {tensor.size_bytes});",
            "    }",
        ]
    lines += calls.body
    for t in program.outputs:
        tensor = program.tensors[t]
        inside = f"{symbol(program, f'output_{tensor.name}')}({alone})"
        lines += [
            f"    if (outputs->{tensor.name} != NULL && outputs->{tensor.name} != {inside}) {{",
            f"        (void)memcpy(outputs->{tensor.name}, {inside}, {tensor.size_bytes});",
            "    }",
        ]
    return "\n".join([*lines, "    return 0;", "}"])


def _feed(program: Program, calls: Calls, external: bool) -> str:
    assert program.fed is not None
    item = np.dtype(program.tensors[program.fed.tensor].dtype).itemsize
    refused = _missing(program, external, "row")
    refused += f" || (uintptr_t)row % {item}u != 0u" if item > 1 else ""
    arenas = "arenas, " if external else ""
    lines = [
        header.feed_head(program, external),
        "{",
        f"    if ({refused}) {{",
        f"        return {INVALID};",
        "    }",
        f"    return feed({arenas}(const uint8_t *)(const void *)row, {program.fed.rows}u);",
        "}",
        "",
        header.restart_head(program, external),
        "{",
        *calls.body,
        "}",
    ]
    return "\n".join(lines)
