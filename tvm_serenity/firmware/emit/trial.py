"""``trial.c``: a project's ``model.c`` as a function that fills the arenas with garbage first."""

from tvm_serenity.firmware.emit.c import C_TYPES, arenas, join, symbol
from tvm_serenity.firmware.program import Program

SOURCES = ("trial.c", "kernels.c", "weights.c")
"""What a trial is compiled from; ``trial.c`` includes ``model.c``."""


def trial_source(program: Program, external_arena: bool, feeding: str | None = None) -> str:
    """Return ``trial.c``: ``int32_t serenity_trial(inputs, outputs, poison)``.

    ``feeding`` runs a model whose first input arrives row by row (``feeding_rows``). Tensors are
    passed to ``serenity_sink``, when they are written, as to the harness.
    """
    name = symbol(program, "trace")
    fill = "\n".join(
        f"    (void)memset(arena_{region}, poison, sizeof arena_{region});"
        for region in program.arena_bytes
    )
    return join(
        [
            '#include "model.c"\n',
            _arenas_of_caller(program) if external_arena else "",
            "typedef void (*serenity_sink_type)(uint32_t, const void *data, uint32_t size);\n"
            "static serenity_sink_type serenity_to;\n"
            "void serenity_sink(serenity_sink_type to) { serenity_to = to; }\n"
            f"void {name}(uint32_t tensor, const void *data, uint32_t size)\n{{\n"
            "    if (serenity_to != NULL) {\n        serenity_to(tensor, data, size);\n    }\n}\n",
            "int32_t serenity_trial(\n"
            "    const void *const *inputs, void *const *outputs, int poison)\n{\n"
            f"    (void)inputs;\n    (void)outputs;\n{fill}\n"
            f"{feeding or _whole(program, external_arena)}\n}}\n",
        ]
    )


def feeding_rows(program: Program, ctype: str, height: int, row_bytes: int) -> str:
    """Return the body that feeds ``height`` rows and then copies the outputs."""
    lines = []
    for i, t in enumerate(program.inputs, start=1):
        tensor = program.tensors[t]
        inside = f"{symbol(program, f'input_{tensor.name}')}()"
        lines.append(f"    (void)memcpy({inside}, inputs[{i}], {tensor.size_bytes});")
    lines += [
        "    int32_t left = -1;",
        f"    for (uint32_t y = 0; y < {height}u; ++y) {{",
        f"        const uint8_t *const row = (const uint8_t *)inputs[0] + y * {row_bytes}u;",
        f"        left = {symbol(program, 'feed_row')}((const {ctype} *)(const void *)row);",
        "    }",
    ]
    for i, t in enumerate(program.outputs):
        tensor = program.tensors[t]
        inside = f"{symbol(program, f'output_{tensor.name}')}()"
        lines.append(f"    (void)memcpy(outputs[{i}], {inside}, {tensor.size_bytes});")
    return "\n".join([*lines, "    return left;"])


def _whole(program: Program, external_arena: bool) -> str:
    given = [f"(const {_type(program, t)} *)inputs[{i}]" for i, t in enumerate(program.inputs)]
    made = [f"({_type(program, t)} *)outputs[{i}]" for i, t in enumerate(program.outputs)]
    arena = "&arenas_of_caller, " if external_arena else ""
    return (
        f"    const {symbol(program, 'inputs')} given = {{{', '.join(given)}}};\n"
        f"    const {symbol(program, 'outputs')} made = {{{', '.join(made)}}};\n"
        f"    return {symbol(program, 'run')}({arena}&given, &made);"
    )


def _type(program: Program, tensor: int) -> str:
    return C_TYPES[program.tensors[tensor].dtype]


def _arenas_of_caller(program: Program) -> str:
    fields = ", ".join(f"arena_{region}" for region in program.arena_bytes)
    made = f"static const {symbol(program, 'arenas')} arenas_of_caller = {{{fields}}};"
    return f"{arenas(program)}\n{made}"
