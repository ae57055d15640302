"""``model.h``: what a program says of its inputs and outputs, and its functions."""

import numpy as np

from tvm_serenity.firmware.emit.c import C_TYPES, banner, join, symbol
from tvm_serenity.firmware.emit.interface import by_number, classify
from tvm_serenity.firmware.emit.interface.edges import edges, named_macros
from tvm_serenity.firmware.program import Program

LITTLE_ENDIAN = """\
#if (defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__) || \\
    defined(__BIG_ENDIAN__) || defined(__ARM_BIG_ENDIAN)
#error "weights and kernels are for a little-endian target"
#endif

"""


def header(program: Program, external: bool) -> str:
    """Return ``model.h``; every declared name begins with the program's name.

    ``external``: the caller provides the arena.
    """
    guard = f"{program.name.upper()}_MODEL_H"
    return join(
        [
            banner(program, "interface")
            + f"#ifndef {guard}\n#define {guard}\n\n#include <math.h>\n#include <stdbool.h>\n"
            f"#include <stdint.h>\n\n{LITTLE_ENDIAN}"
            '#ifdef __cplusplus\nextern "C" {\n#endif\n',
            _arena_macros(program),
            *(named_macros(edge) for edge in edges(program)),
            _arenas(program) if external else "",
            _structures(program) if program.fed is None else "",
            *(_run(program, external) if program.fed is None else _feed(program, external)),
            _accessors(program, external),
            by_number.interface(program),
            classify.declaration(program, external),
            "#ifdef __cplusplus\n}\n#endif\n\n#endif\n",
        ]
    )


def arenas_type(program: Program, external: bool) -> str:
    """Return the type of a pointer to the caller's arenas, "" if the arenas are static.

    If input rows arrive one by one, the structure also holds the state between two rows, so it is
    not const.
    """
    if not external:
        return ""
    const = "" if program.fed is not None else "const "
    return f"{const}{symbol(program, 'arenas')} *"


def run_head(program: Program, external: bool) -> str:
    """Return the prototype of ``run``."""
    arenas = f"{arenas_type(program, external)}arenas, " if external else ""
    return (
        f"int32_t {symbol(program, 'run')}({arenas}const {symbol(program, 'inputs')} *inputs,\n"
        f"    const {symbol(program, 'outputs')} *outputs)"
    )


def feed_head(program: Program, external: bool) -> str:
    """Return the prototype of ``feed_row``."""
    arenas = f"{arenas_type(program, external)}arenas, " if external else ""
    return f"int32_t {symbol(program, 'feed_row')}({arenas}const {row_type(program)} *row)"


def step_head(program: Program, external: bool) -> str:
    """Return the prototype of ``step``, "" unless a step takes one element of a stream."""
    fed, moving = program.fed, program.moving
    if fed is None or moving is None or moving.step != 1:
        return ""
    if fed.row_bytes != np.dtype(program.tensors[fed.tensor].dtype).itemsize:
        return ""
    arenas = f"{arenas_type(program, external)}arenas, " if external else ""
    return f"int32_t {symbol(program, 'step')}({arenas}{row_type(program)} element)"


def restart_head(program: Program, external: bool) -> str:
    """Return the prototype of ``restart``."""
    arenas = f"{arenas_type(program, external)}arenas" if external else "void"
    return f"void {symbol(program, 'restart')}({arenas})"


def accessor_head(program: Program, role: str, tensor: int, external: bool) -> str:
    """Return the prototype of the function that returns the address of an input or output."""
    known = program.tensors[tensor]
    arenas = f"const {symbol(program, 'arenas')} *arenas" if external else "void"
    return f"{C_TYPES[known.dtype]} *{symbol(program, f'{role}_{known.name}')}({arenas})"


def row_type(program: Program) -> str:
    """Return the C type of the elements of an input row."""
    assert program.fed is not None
    return C_TYPES[program.tensors[program.fed.tensor].dtype]


def _arena_macros(program: Program) -> str:
    prefix = program.name.upper()
    lines = ["/* Bytes of memory for tensors: in total, and in each region of the board. */"]
    lines.append(f"#define {prefix}_ARENA_BYTES {sum(program.arena_bytes.values())}")
    for region, size in program.arena_bytes.items():
        lines.append(f"#define {prefix}_ARENA_{region.upper()}_BYTES {size}")
    lines.append(f"#define {prefix}_ARENA_ALIGNMENT {program.alignment_bytes}")
    lines.append(f"#define {prefix}_CONSTANT_BYTES {program.constant_bytes}")
    return "\n".join(lines)


def _arenas(program: Program) -> str:
    lines = [
        "/* Memory that the caller provides: one block per region, aligned to ARENA_ALIGNMENT. */",
        "typedef struct {",
        *(f"    uint8_t *{region};" for region in program.arena_bytes),
    ]
    if program.fed is not None:
        lines += [
            "    uint32_t next_call; /* next_call and rows_taken: 0 before the first row */",
            "    uint32_t rows_taken;",
        ]
    return "\n".join([*lines, f"}} {symbol(program, 'arenas')};"])


def _structures(program: Program) -> str:
    parts = []
    for role, tensors, const in (
        ("inputs", program.inputs, "const "),
        ("outputs", program.outputs, ""),
    ):
        verb = "read" if const else "written"
        parts += [
            f"/* Where {role} are {verb}; NULL: in the arena itself (see the accessors). */",
            "typedef struct {",
            *(
                f"    {const}{C_TYPES[program.tensors[t].dtype]} *{program.tensors[t].name};"
                for t in tensors
            ),
            f"}} {symbol(program, role)};\n",
        ]
    return "\n".join(parts)


def _reentrant(external: bool) -> str:
    if external:
        return "Re-entrant: all state is in the arenas; two calls must not share them at a time. */"
    return "Not re-entrant: all state is in one static arena. */"


def _run(program: Program, external: bool) -> list[str]:
    return [
        "/* Run the network once. Inputs are copied into the arena, outputs out of it, unless\n"
        "   their pointer is NULL. Returns 0, or -1 if an argument is NULL; there are no other "
        f"errors.\n   {_reentrant(external)}\n{run_head(program, external)};",
        "/* Addresses of inputs and outputs in the arena. A run reuses the memory of inputs:\n"
        "   fill them before each run. Outputs are valid until the next run, or until an input is\n"
        "   filled. */",
    ]


def _wanted(program: Program) -> str:
    """Return the comment on the result of ``feed_row``."""
    if program.moving is None:
        return """\
/* Take the next row of the input, and compute all rows that it completes. Returns the
   number of missing rows; 0: the outputs are complete, and the next row begins a new run.
"""
    return """\
/* Take the next row of a stream; with the last row of a step, compute the new rows of
   the window that ends with it. Returns the number of missing rows until the next
   outputs; 0: the outputs are those of the window that ends with this row.
"""


def _feed(program: Program, external: bool) -> list[str]:
    missing = ", or if no\n   arena is given" if external else ""
    step = step_head(program, external)
    return [
        f"{_wanted(program)}"
        f"   The row is read during the call only, and must be aligned as {row_type(program)} "
        "is.\n   Returns -1, and takes no row, if it is NULL or not aligned"
        f"{missing}.\n"
        f"   {_reentrant(external)}\n{feed_head(program, external)};",
        *([f"/* The same with one element by value, such as a token. */\n{step};"] if step else []),
        "/* Discard the rows taken so far: the next row begins a new run. */\n"
        f"{restart_head(program, external)};",
        "/* Inputs, to be filled before the first row, and outputs, valid until the next row. */",
    ]


def _accessors(program: Program, external: bool) -> str:
    roles = (("input", program.inputs), ("output", program.outputs))
    heads = [accessor_head(program, role, t, external) for role, ts in roles for t in ts]
    return "\n".join(f"{head};" for head in heads)
