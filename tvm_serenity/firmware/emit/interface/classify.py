"""``NAME_classify``: the class whose element of the first output is the largest, with its label."""

import math

from tvm_serenity.firmware.emit.c import C_TYPES, join, string, symbol
from tvm_serenity.firmware.emit.interface.by_number import real
from tvm_serenity.firmware.program import Program, Tensor


def scores(program: Program) -> Tensor | None:
    """Return the first output if its elements stand for classes, else None."""
    first = program.tensors[program.outputs[0]] if program.outputs else None
    return first if first is not None and first.is_vector else None


def declaration(program: Program, external: bool) -> str:
    """Return what ``model.h`` says of the classes; "" if the first output is no vector."""
    found = scores(program)
    if found is None:
        return ""
    kind = symbol(program, "class")
    return join(
        [
            f"#define {program.name.upper()}_CLASSES {math.prod(found.shape)}\n"
            f'/* A class: its number, its label ("" where the model has none), its real value in '
            f"output {found.name}. */\n"
            "typedef struct {\n    uint32_t index;\n    const char *label;\n    float score;\n"
            f"}} {kind};",
            "/* The class of the largest element, of equal ones the first. Call it while the\n"
            f"   output is valid. */\n{_head(program, external)};",
        ]
    )


def definition(program: Program, external: bool) -> str:
    """Return the function for ``model.c``; "" if the first output is no vector."""
    found = scores(program)
    if found is None:
        return ""
    count, kind = f"{program.name.upper()}_CLASSES", symbol(program, "class")
    inside = f"{symbol(program, f'output_{found.name}')}({'arenas' if external else ''})"
    labels = "".join(f"    {string(label)},\n" for label in found.labels)
    label = "labels[best]" if found.labels else '""'
    return join(
        [
            f"static const char *const labels[{count}] = {{\n{labels}}};\n" if labels else "",
            f"{_head(program, external)}\n{{\n"
            f"    const {C_TYPES[found.dtype]} *const scores = {inside};\n"
            f"    uint32_t best = 0;\n    for (uint32_t i = 1; i < {count}; ++i) {{\n"
            "        best = scores[i] > scores[best] ? i : best;\n    }\n"
            f"    const {kind} found = {{best, {label}, {real(program, 0)}(scores[best])}};\n"
            "    return found;\n}\n",
        ]
    )


def _head(program: Program, external: bool) -> str:
    given = f"const {symbol(program, 'arenas')} *arenas" if external else "void"
    return f"{symbol(program, 'class')} {symbol(program, 'classify')}({given})"
