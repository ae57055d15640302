"""``model.h`` and ``model.c`` of a row program: the table, and the walker that follows it."""

from importlib import resources

import numpy as np

from tvm_serenity.firmware.emit import model as whole
from tvm_serenity.firmware.emit.c import C_TYPES, arenas, banner, join, symbol
from tvm_serenity.firmware.rows.program import RowLayer, RowProgram
from tvm_serenity.firmware.rows.table import tables, width


def header(rows: RowProgram) -> str:
    """Return ``model.h``."""
    program = rows.program
    if not rows.streamed:
        return whole.header(program, False)
    guard = f"{program.name.upper()}_MODEL_H"
    return join(
        [
            banner(program, "interface")
            + f"#ifndef {guard}\n#define {guard}\n\n#include <stdbool.h>\n#include <stdint.h>\n\n"
            '#ifdef __cplusplus\nextern "C" {\n#endif\n',
            whole._arena_macros(program),
            whole._tensor_macros(program, "INPUT", _fed(rows)),
            *(whole._tensor_macros(program, "INPUT", t) for t in program.inputs),
            *(whole._tensor_macros(program, "OUTPUT", t) for t in program.outputs),
            _row_macros(rows),
            _prototypes(rows),
            "#ifdef __cplusplus\n}\n#endif\n\n#endif\n",
        ]
    )


def source(rows: RowProgram) -> str:
    """Return ``model.c``."""
    program = rows.program
    return join(
        [
            banner(program, "its rows in order")
            + '#include "model.h"\n\n#include <stddef.h>\n#include <string.h>\n\n'
            '#include "kernels.h"\n#include "weights.h"\n',
            arenas(program),
            whole._trace(program),
            f"#define ARENA arena_{next(iter(program.arena_bytes))}\n",
            tables(rows).types,
            _library("types.h"),
            *(_run(rows, i, layer) for i, layer in enumerate(rows.layers) if layer is not None),
            tables(rows).text,
            f"#define MOST_SLOTS {_most_slots(rows)}\n#define ENTRIES {len(rows.sequence)}\n"
            f"#define FED {_fed(rows) if rows.streamed else 0}\n"
            f"#define LAYERS {sum(layer is not None for layer in rows.layers)}\n",
            _library("walk.h"),
            whole._accessors(program, False),
            _feed(rows) if rows.streamed else _run_all(rows),
        ]
    )


def _library(name: str) -> str:
    file = resources.files("tvm_serenity.firmware.rows") / "library" / name
    return file.read_text(encoding="utf-8")


def _fed(rows: RowProgram) -> int:
    """The tensor whose rows arrive."""
    return rows.banded.network.inputs[0]


def _most_slots(rows: RowProgram) -> int:
    return max([1, *(len(layer.slots) for layer in rows.layers if layer is not None)])


def _run(rows: RowProgram, index: int, layer: RowLayer) -> str:
    """The function that calls a layer's kernel with its constants."""
    cases = [_call(rows, layer, name) for name in layer.kernels]
    head = f"static void run_{index}(const uint8_t *const *rows, uint8_t *out, uint32_t y)\n{{\n"
    unused = "" if layer.slots else "    (void)rows;\n"
    if layer.merges:
        return f"{head}    {cases[0]}\n}}\n"
    if len(cases) == 1:
        return f"{head}{unused}    (void)y;\n    {cases[0]}\n}}\n"
    if layer.variant_of == (0,) + (1,) * (len(layer.variant_of) - 1):
        return (
            f"{head}{unused}    if (y == 0u) {{\n        {cases[0]}\n    }} else {{\n"
            f"        {cases[1]}\n    }}\n}}\n"
        )
    numbers = ", ".join(map(str, layer.variant_of))
    bits = width(layer.variant_of)
    lines = [f"{head}{unused}    static const uint{bits}_t variant[] = {{{numbers}}};"]
    lines.append("    switch (variant[y]) {")
    for number, case in enumerate(cases[1:], start=1):
        lines += [f"    case {number}:", f"        {case}", "        break;"]
    lines += ["    default:", f"        {cases[0]}", "        break;", "    }", "}\n"]
    return "\n".join(lines)


def _call(rows: RowProgram, layer: RowLayer, name: str) -> str:
    program = rows.program
    kernel = program.kernel[name]
    arguments = [f"rows[{i}]" for i in range(len(layer.slots))]
    arguments += [symbol(program, program.constants[c].name) for c in layer.constants]
    arguments.append("out")
    if layer.merges:
        arguments.append("&y")
    if layer.workspace_at is not None:
        arguments.append(f"ARENA + {layer.workspace_at}")
    typed = []
    for argument, param in zip(arguments, kernel.params, strict=True):
        constant = argument.startswith(symbol(program, ""))
        if constant or param.dtype == "uint8" or argument == "&y":
            typed.append(argument)
        else:
            const = "const " if param.readonly else ""
            typed.append(f"({const}{C_TYPES[param.dtype]} *){_through_void(argument, const)}")
    return f"{symbol(program, name)}({', '.join(typed)});"


def _through_void(argument: str, const: str) -> str:
    return (
        f"({const}void *){argument}" if argument.isidentifier() else f"({const}void *)({argument})"
    )


def _run_all(rows: RowProgram) -> str:
    """``run`` of a program whose inputs lie in the arena."""
    text = whole._run(rows.program, False)
    marker = "    return 0;\n}"
    outputs = text.find("    if (outputs->")
    at = outputs if outputs >= 0 else text.rfind(marker)
    return f"{text[:at]}    walk(0);\n{text[at:]}"


def _row_macros(rows: RowProgram) -> str:
    program = rows.program
    feature = rows.banded.network.features[_fed(rows)]
    prefix = f"{program.name.upper()}_INPUT_{program.tensors[_fed(rows)].name.upper()}"
    return (
        "/* The input arrives row by row, from the top. */\n"
        f"#define {prefix}_ROWS {feature.height}\n#define {prefix}_ROW_BYTES {feature.row_bytes}"
    )


def _prototypes(rows: RowProgram) -> str:
    program = rows.program
    lines = [
        "/* Take in the next row of the input, and compute what it makes possible. Returns the",
        "   rows still wanted; 0: the outputs are complete, and the next row begins a new run.",
        f"   The row is read during the call alone, and must be aligned as {_row_type(rows)} is.",
        "   Returns -1, and takes nothing in, where it is NULL or is not aligned so.",
        "   Not re-entrant: all state is in one static arena. */",
        f"int32_t {symbol(program, 'feed_row')}(const {_row_type(rows)} *row);",
        "",
        "/* Forget the rows taken in: the next one begins a run. */",
        f"void {symbol(program, 'restart')}(void);",
        "",
        "/* Inputs, to be filled before the first row, and outputs, valid until the next one. */",
    ]
    for role, tensors in (("input", program.inputs), ("output", program.outputs)):
        for t in tensors:
            ctype = C_TYPES[program.tensors[t].dtype]
            lines.append(f"{ctype} *{symbol(program, f'{role}_{program.tensors[t].name}')}(void);")
    return "\n".join(lines)


def _row_type(rows: RowProgram) -> str:
    return C_TYPES[rows.program.tensors[_fed(rows)].dtype]


def _feed(rows: RowProgram) -> str:
    program = rows.program
    height = rows.banded.network.rows(_fed(rows))
    fed = f"feed((const uint8_t *)(const void *)row, {height}u)"
    item = np.dtype(program.tensors[_fed(rows)].dtype).itemsize
    apart = f" || (uintptr_t)row % {item}u != 0u" if item > 1 else ""
    return (
        f"{_library('feed.h')}\n"
        f"int32_t {symbol(program, 'feed_row')}(const {_row_type(rows)} *row)\n{{\n"
        f"    if (row == NULL{apart}) {{\n        return -1;\n    }}\n"
        f"    return {fed};\n}}\n\n"
        f"void {symbol(program, 'restart')}(void)\n{{\n    at = 0;\n    taken = 0;\n}}\n"
    )
