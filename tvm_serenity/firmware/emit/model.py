"""``model.h`` and ``model.c``: the interface of a program and the calls it makes."""

import math

from tvm_serenity.firmware.emit.c import C_TYPES, arenas, banner, join, symbol
from tvm_serenity.firmware.program import Argument, Const, Data, Place, Program, Scratch

INVALID = -1
"""What ``run`` returns where a pointer is missing."""


def header(program: Program, external_arena: bool) -> str:
    """Return ``model.h``."""
    guard = f"{program.name.upper()}_MODEL_H"
    return join(
        [
            banner(program, "interface")
            + f"#ifndef {guard}\n#define {guard}\n\n#include <stdbool.h>\n#include <stdint.h>\n\n"
            '#ifdef __cplusplus\nextern "C" {\n#endif\n',
            _arena_macros(program),
            *(_tensor_macros(program, "INPUT", t) for t in program.inputs),
            *(_tensor_macros(program, "OUTPUT", t) for t in program.outputs),
            _structures(program, external_arena),
            _functions(program, external_arena),
            "#ifdef __cplusplus\n}\n#endif\n\n#endif\n",
        ]
    )


def _arena_macros(program: Program) -> str:
    prefix = program.name.upper()
    lines = ["/* Memory for tensors, in bytes: in all, and in each region of the board. */"]
    lines.append(f"#define {prefix}_ARENA_BYTES {sum(program.arena_bytes.values())}")
    for region, size in program.arena_bytes.items():
        lines.append(f"#define {prefix}_ARENA_{region.upper()}_BYTES {size}")
    lines.append(f"#define {prefix}_ARENA_ALIGNMENT {program.alignment_bytes}")
    lines.append(f"#define {prefix}_CONSTANT_BYTES {program.constant_bytes}")
    return "\n".join(lines)


def _tensor_macros(program: Program, role: str, index: int) -> str:
    tensor = program.tensors[index]
    prefix = f"{program.name.upper()}_{role}_{tensor.name.upper()}"
    shape = ", ".join(map(str, tensor.shape))
    elements = math.prod(tensor.shape)
    lines = [
        f"/* {role.capitalize()} {tensor.name}: {tensor.dtype}, shape ({shape}). */",
        f"#define {prefix}_BYTES {tensor.size_bytes}",
        f"#define {prefix}_ELEMENTS {elements}",
        f"#define {prefix}_RANK {len(tensor.shape)}",
    ]
    lines += [f"#define {prefix}_DIM_{i} {extent}" for i, extent in enumerate(tensor.shape)]
    if tensor.quantisation is not None:
        lines += [
            "/* real value = scale * (stored value - zero point) */",
            f"#define {prefix}_SCALE {tensor.quantisation.scale!r}f",
            f"#define {prefix}_ZERO_POINT ({tensor.quantisation.zero_point})",
        ]
    if tensor.initial is not None:
        lines += [
            "/* A state: fill it with this before the first run, later with its output. */",
            f"#define {prefix}_INITIAL ({tensor.initial})",
        ]
    return "\n".join(lines)


def _structures(program: Program, external_arena: bool) -> str:
    parts = []
    if external_arena:
        parts += [
            "/* Memory the caller provides: a block a region, aligned to ARENA_ALIGNMENT. */",
            "typedef struct {",
            *(f"    uint8_t *{region};" for region in program.arena_bytes),
            f"}} {symbol(program, 'arenas')};\n",
        ]
    for role, tensors, const in (
        ("inputs", program.inputs, "const "),
        ("outputs", program.outputs, ""),
    ):
        what = "read" if const else "written"
        parts += [
            f"/* Where {role} are {what}; NULL: in place in the arena (see the accessors). */",
            "typedef struct {",
            *(
                f"    {const}{C_TYPES[program.tensors[t].dtype]} *{program.tensors[t].name};"
                for t in tensors
            ),
            f"}} {symbol(program, role)};\n",
        ]
    return "\n".join(parts)


def _functions(program: Program, external_arena: bool) -> str:
    arenas = f"const {symbol(program, 'arenas')} *arenas, " if external_arena else ""
    alone = f"const {symbol(program, 'arenas')} *arenas" if external_arena else "void"
    reentrant = (
        "Re-entrant: all state is in the arenas, which no two calls may use at a time."
        if external_arena
        else "Not re-entrant: all state is in one static arena."
    )
    lines = [
        "/* Run the network once. Inputs are copied into the arena, outputs out of it, unless",
        "   their pointer is NULL. Returns 0, or -1 where an argument is NULL; nothing else fails.",
        f"   {reentrant} */",
        f"int32_t {symbol(program, 'run')}({arenas}const {symbol(program, 'inputs')} *inputs,",
        f"    const {symbol(program, 'outputs')} *outputs);",
        "",
        "/* Inputs and outputs inside the arena. An input's memory is reused during the run: fill",
        "   it before each. An output is valid until the next run, or an input is filled. */",
    ]
    for role, tensors in (("input", program.inputs), ("output", program.outputs)):
        for t in tensors:
            ctype = C_TYPES[program.tensors[t].dtype]
            name = symbol(program, f"{role}_{program.tensors[t].name}")
            lines.append(f"{ctype} *{name}({alone});")
    return "\n".join(lines)


def source(program: Program, external_arena: bool) -> str:
    """Return ``model.c``."""
    return join(
        [
            banner(program, "its calls in order")
            + '#include "model.h"\n\n#include <stddef.h>\n#include <string.h>\n\n'
            '#include "kernels.h"\n#include "weights.h"\n',
            "" if external_arena else arenas(program),
            _trace(program),
            _accessors(program, external_arena),
            _run(program, external_arena),
        ]
    )


def _trace(program: Program) -> str:
    call = symbol(program, "trace")
    return (
        "/* With SERENITY_TRACE every tensor is shown to the caller when it is complete. */\n"
        "#if defined(SERENITY_TRACE)\n"
        f"void {call}(uint32_t tensor, const void *data, uint32_t size);\n"
        f"#define TRACE(tensor, data, size) {call}(tensor, data, size)\n"
        "#else\n#define TRACE(tensor, data, size) ((void)0)\n#endif\n"
    )


def _base(region: str, external_arena: bool) -> str:
    return f"arenas->{region}" if external_arena else f"arena_{region}"


def _pointer(program: Program, place: Place, dtype: str, external_arena: bool, const: bool) -> str:
    at = _base(place.region, external_arena)
    if place.offset_bytes:
        at = f"({at} + {place.offset_bytes})"
    if dtype == "uint8":
        return at
    return f"({'const ' if const else ''}{C_TYPES[dtype]} *)(void *){at}"


def _accessors(program: Program, external_arena: bool) -> str:
    alone = f"const {symbol(program, 'arenas')} *arenas" if external_arena else "void"
    parts = []
    for role, tensors in (("input", program.inputs), ("output", program.outputs)):
        for t in tensors:
            tensor = program.tensors[t]
            at = _pointer(program, program.places[t], tensor.dtype, external_arena, False)
            name = symbol(program, f"{role}_{tensor.name}")
            parts.append(f"{C_TYPES[tensor.dtype]} *{name}({alone}) {{ return {at}; }}")
    return "\n\n".join(parts)


def _run(program: Program, external_arena: bool) -> str:
    arenas = f"const {symbol(program, 'arenas')} *arenas, " if external_arena else ""
    missing = ["inputs == NULL", "outputs == NULL"]
    if external_arena:
        missing = ["arenas == NULL", *missing]
        missing += [f"arenas->{r} == NULL" for r, size in program.arena_bytes.items() if size]
    lines = [
        f"int32_t {symbol(program, 'run')}({arenas}const {symbol(program, 'inputs')} *inputs,",
        f"    const {symbol(program, 'outputs')} *outputs)",
        "{",
        f"    if ({' || '.join(missing)}) {{",
        f"        return {INVALID};",
        "    }",
    ]
    alone = "arenas" if external_arena else ""
    for t in program.inputs:
        tensor = program.tensors[t]
        inside = f"{symbol(program, f'input_{tensor.name}')}({alone})"
        lines += [
            f"    if (inputs->{tensor.name} != NULL && inputs->{tensor.name} != {inside}) {{",
            f"        (void)memcpy({inside}, inputs->{tensor.name}, {tensor.size_bytes});",
            "    }",
        ]
    for number, step in enumerate(program.steps):
        lines += _step(program, number, external_arena)
        for t in step.writes:
            at = _pointer(program, program.places[t], "uint8", external_arena, True)
            lines.append(f"    TRACE({t}, {at}, {program.tensors[t].size_bytes});")
    for t in program.outputs:
        tensor = program.tensors[t]
        inside = f"{symbol(program, f'output_{tensor.name}')}({alone})"
        lines += [
            f"    if (outputs->{tensor.name} != NULL && outputs->{tensor.name} != {inside}) {{",
            f"        (void)memcpy(outputs->{tensor.name}, {inside}, {tensor.size_bytes});",
            "    }",
        ]
    return "\n".join([*lines, "    return 0;", "}"])


def _step(program: Program, number: int, external_arena: bool) -> list[str]:
    step = program.steps[number]
    kernel = program.kernel[step.kernel]
    arguments = [
        _argument(program, a, p.dtype, external_arena, p.readonly)
        for a, p in zip(step.arguments, kernel.params, strict=True)
    ]
    made = ", ".join(program.tensors[t].name for t in step.writes)
    head = f"    {symbol(program, step.kernel)}("
    return [f"    /* {number}: {made} */", head + ", ".join(arguments) + ");"]


def _argument(
    program: Program, argument: Argument, dtype: str, external_arena: bool, const: bool
) -> str:
    if isinstance(argument, Const):
        return symbol(program, program.constants[argument.constant].name)
    if isinstance(argument, Data):
        return _pointer(program, program.places[argument.tensor], dtype, external_arena, const)
    assert isinstance(argument, Scratch)
    return _pointer(program, argument.place, dtype, external_arena, const)
