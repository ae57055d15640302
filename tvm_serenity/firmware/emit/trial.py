"""``trial.c``: a function that poisons the arenas, then runs a project's ``model.c``."""

from tvm_serenity.firmware.emit import caller
from tvm_serenity.firmware.emit.c import C_TYPES, file, has_port, join, symbol
from tvm_serenity.firmware.emit.forms import FORMS
from tvm_serenity.firmware.emit.macros import MACROS
from tvm_serenity.firmware.emit.transfers import counting_port, told_of_rows
from tvm_serenity.firmware.program import Program

TRIAL = "trial.c"


def sources(program: Program) -> tuple[str, ...]:
    """Return the names of the source files of a trial.

    ``trial.c`` includes ``model.c``, ``forms.c`` includes ``kernels.c``.
    """
    return (TRIAL, FORMS, MACROS, file(program, "weights.c"))


def trial_source(program: Program, external: bool) -> str:
    """Return ``trial.c``: ``int32_t serenity_trial(inputs, outputs, poison)``.

    An input that arrives row by row is fed so. Each written tensor is passed to
    ``serenity_sink``, as the harness does in its trace.
    """
    name = symbol(program, "trace")
    fill = "\n".join(
        f"    (void)memset(arena_{region}, poison, sizeof arena_{region});"
        for region in program.arena_bytes
    )
    return join(
        [
            "#define SERENITY_LIFETIMES\n" * has_port(program)
            + f'#include "{file(program, "model.c")}"\n',
            caller.memory(program, external),
            _transfers(program),
            "typedef void (*serenity_sink_type)(uint32_t, const void *data, uint32_t size);\n"
            "static serenity_sink_type serenity_to;\n"
            "void serenity_sink(serenity_sink_type to) { serenity_to = to; }\n"
            f"void {name}(uint32_t tensor, const void *data, uint32_t size)\n{{\n"
            "    if (serenity_to != NULL) {\n        serenity_to(tensor, data, size);\n    }\n}\n",
            "int32_t serenity_trial(\n"
            "    const void *const *inputs, void *const *outputs, int poison)\n{\n"
            f"    (void)inputs;\n    (void)outputs;\n{fill}\n"
            + "    serenity_poison = poison;\n" * has_port(program)
            + "    serenity_count = 0;\n" * has_port(program)
            + (_runs(program, external) if program.fed is None else _feeds(program, external))
            + "\n}\n",
        ]
    )


def _transfers(program: Program) -> str:
    """The port of a network in two memories, and its poison.

    Memory that ends to hold a tensor, or rows, is poisoned.
    """
    if not has_port(program):
        return ""
    return (
        f"{counting_port(program, 'serenity_count')}"
        "uint64_t serenity_transferred(void) { return serenity_count; }\n"
        + (told_of_rows(program) if program.copies else "")
        + "static int serenity_poison;\n"
        f"void {symbol(program, 'lifetime')}(void *data, uint32_t size, int begins)\n{{\n"
        "    if (!begins) {\n        (void)memset(data, serenity_poison, size);\n    }\n}\n"
    )


def _runs(program: Program, external: bool) -> str:
    given = [f"(const {_type(program, t)} *)inputs[{i}]" for i, t in enumerate(program.inputs)]
    made = [f"({_type(program, t)} *)outputs[{i}]" for i, t in enumerate(program.outputs)]
    return (
        f"    const {symbol(program, 'inputs')} given = {{{', '.join(given)}}};\n"
        f"    const {symbol(program, 'outputs')} made = {{{', '.join(made)}}};\n"
        f"    return {caller.run(program, external, 'given', 'made')};"
    )


def _feeds(program: Program, external: bool) -> str:
    """Return lines that feed the rows of the first input, and copy outputs once complete."""
    assert program.fed is not None
    size, ctype = program.fed.row_bytes, _type(program, program.fed.tensor)
    lines = []
    for i, t in enumerate(program.inputs, start=1):
        inside = caller.inside(program, "input", t, external)
        lines.append(f"    (void)memcpy({inside}, inputs[{i}], {program.tensors[t].size_bytes});")
    row = f"(const {ctype} *)(const void *)row"
    copies = []
    for i, t in enumerate(program.outputs):
        inside, bytes_ = (
            caller.inside(program, "output", t, external),
            program.tensors[t].size_bytes,
        )
        copies.append(
            f"(void)memcpy((uint8_t *)outputs[{i}] + window * {bytes_}u, {inside}, {bytes_});"
        )
    lines += [
        f"    {caller.restart(program, external)};",
        "    int32_t left = -1;",
        "    uint32_t window = 0;",
        f"    for (uint32_t y = 0; y < {program.rows_fed}u; ++y) {{",
        f"        const uint8_t *const row = (const uint8_t *)inputs[0] + y * {size}u;",
        f"        left = {caller.feed(program, external, row)};",
        "        if (left == 0) {",
        *(f"            {copy}" for copy in copies),
        "            ++window;",
        "        }",
        "    }",
    ]
    return "\n".join([*lines, "    return left;"])


def _type(program: Program, tensor: int) -> str:
    return C_TYPES[program.tensors[tensor].dtype]
