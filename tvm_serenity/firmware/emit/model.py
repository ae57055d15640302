"""``model.c``: the functions of ``model.h``, which copy inputs and outputs and call the kernels."""

import numpy as np

from tvm_serenity.firmware.emit import header
from tvm_serenity.firmware.emit.arguments import pointer
from tvm_serenity.firmware.emit.c import (
    PORT_HEADER,
    arenas,
    banner,
    file,
    has_port,
    join,
    symbol,
)
from tvm_serenity.firmware.emit.calls import Calls, calls
from tvm_serenity.firmware.emit.interface import classify
from tvm_serenity.firmware.emit.transfers import call_macros, lifetime_macros
from tvm_serenity.firmware.program import Program

INVALID = -1
"""The result of ``run`` if a pointer is NULL."""


def source(program: Program, external: bool) -> str:
    """Return ``model.c``; ``external``: the caller provides the arenas."""
    kernel_calls = calls(program, external)
    return join(
        [
            banner(program, "the kernel calls in their order")
            + f'#include "{file(program, "model.h")}"\n\n#include <stddef.h>\n#include <string.h>\n'
            f'\n#include "{file(program, "kernels.h")}"\n#include "{file(program, "weights.h")}"\n'
            + (f'#include "{file(program, PORT_HEADER)}"\n' if has_port(program) else ""),
            "" if external else arenas(program),
            _trace(program, external),
            lifetime_macros(program) if program.transfers else "",
            call_macros(program) if program.copies else "",
            kernel_calls.definitions,
            _accessors(program, external),
            (_run if program.fed is None else _feed)(program, kernel_calls, external),
            classify.definition(program, external),
        ]
    )


def _trace(program: Program, external: bool) -> str:
    call = symbol(program, "trace")
    shown, state = f"{call}(tensor, data, size)", ""
    if program.moving is not None:  # tensors are valid once the first window is full
        steps = "arenas->next_call" if external else "next_call"
        full = f"{steps} + 1u >= {program.moving.steps_to_fill}u"
        shown = f"(({full}) ? {shown} : (void)0)"
        state = "" if external else "static uint32_t next_call;\n"
    return (
        state + "/* With SERENITY_TRACE each complete tensor is passed to the caller. */\n"
        "#if defined(SERENITY_TRACE)\n"
        f"void {call}(uint32_t tensor, const void *data, uint32_t size);\n"
        f"#define TRACE(tensor, data, size) {shown}\n"
        "#else\n#define TRACE(tensor, data, size) ((void)0)\n#endif\n"
    )


def _accessors(program: Program, external: bool) -> str:
    parts = []
    for role, tensors in (("input", program.inputs), ("output", program.outputs)):
        for t in tensors:
            at = pointer(program.place(t), program.tensors[t].dtype, external, False)
            head = header.accessor_head(program, role, t, external)
            parts.append(f"{head} {{ return {at}; }}")
    return "\n\n".join(parts)


def _missing(program: Program, external: bool, *others: str) -> str:
    """Return the C condition that an argument is NULL."""
    missing = [f"{name} == NULL" for name in others]
    if external:
        missing = ["arenas == NULL", *missing]
        missing += [f"arenas->{r} == NULL" for r, size in program.arena_bytes.items() if size]
    return " || ".join(missing)


def _run(program: Program, kernel_calls: Calls, external: bool) -> str:
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
    lines += kernel_calls.body
    for t in program.outputs:
        tensor = program.tensors[t]
        inside = f"{symbol(program, f'output_{tensor.name}')}({alone})"
        lines += [
            f"    if (outputs->{tensor.name} != NULL && outputs->{tensor.name} != {inside}) {{",
            f"        (void)memcpy(outputs->{tensor.name}, {inside}, {tensor.size_bytes});",
            "    }",
        ]
    return "\n".join([*lines, "    return 0;", "}"])


def _feed(program: Program, kernel_calls: Calls, external: bool) -> str:
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
        *kernel_calls.body,
        "}",
    ]
    step = header.step_head(program, external)
    if step:
        passed = f"{symbol(program, 'feed_row')}({arenas}&element)"
        lines += ["", step, "{", f"    return {passed};", "}"]
    return "\n".join(lines)
