"""The calls of a row program: the table, and the walker that follows it."""

from importlib import resources

from tvm_serenity.firmware.emit.c import C_TYPES, join, symbol
from tvm_serenity.firmware.emit.model import Calls, base
from tvm_serenity.firmware.rows.program import RowLayer, RowProgram
from tvm_serenity.firmware.rows.table import tables, width
from tvm_serenity.firmware.rows.trace import steps

STATIC = {"$P": "", "$A": "", "$F": "", "$N": "next_call", "$T": "rows_taken"}
"""What stands in the walker for its memory where that is static: no parameter, two variables."""


def calls(rows: RowProgram, external: bool) -> Calls:
    """Return the calls of ``rows``; ``external``: in arenas that the caller provides."""
    program, found = rows.program, tables(rows)
    memory = _memory(rows, external)
    region = next(iter(program.arena_bytes))
    definitions = join(
        [
            f"#define ARENA {base(region, external)}\n",
            found.types,
            _library("types.h", memory),
            *(
                _run(rows, i, layer, memory)
                for i, layer in enumerate(rows.layers)
                if layer is not None
            ),
            found.text,
            f"#define MOST_SLOTS {_most_slots(rows)}\n#define ENTRIES {len(rows.sequence)}\n"
            f"#define FED {0 if program.fed is None else program.fed.tensor}\n"
            f"#define LAYERS {sum(layer is not None for layer in rows.layers)}\n",
            _library("walk.h", memory),
            "" if program.fed is None else _state(external) + _library("feed.h", memory),
        ]
    )
    about = {
        "steps": steps(rows),
        "rows": {
            "bands": list(rows.banded.heights),
            "streamed": rows.streamed,
            "calls": len(rows.sequence),
            "table_bytes": found.size_bytes,
        },
    }
    body: tuple[str, ...] = (f"    (void)walk({memory['$A']}0);",)
    if program.fed is not None:
        body = (f"    {memory['$N']} = 0;", f"    {memory['$T']} = 0;")
    return Calls(definitions, body, about)


def _memory(rows: RowProgram, external: bool) -> dict[str, str]:
    if not external:
        return STATIC
    arenas = symbol(rows.program, "arenas")
    return {
        "$P": f"const {arenas} *arenas, ",
        "$A": "arenas, ",
        "$F": f"{arenas} *arenas, ",
        "$N": "arenas->next_call",
        "$T": "arenas->rows_taken",
    }


def _state(external: bool) -> str:
    return "" if external else "static uint32_t next_call;\nstatic uint32_t rows_taken;\n\n"


def _library(name: str, memory: dict[str, str]) -> str:
    """A file of the walker, written for where its memory is."""
    path = resources.files("tvm_serenity.firmware.rows") / "library" / name
    text = path.read_text(encoding="utf-8")
    for mark, stands_for in memory.items():
        text = text.replace(mark, stands_for)
    return text


def _most_slots(rows: RowProgram) -> int:
    return max([1, *(len(layer.slots) for layer in rows.layers if layer is not None)])


def _run(rows: RowProgram, index: int, layer: RowLayer, memory: dict[str, str]) -> str:
    """The function that calls a layer's kernel with its constants."""
    cases = [_call(rows, layer, name) for name in layer.kernels]
    parameters = f"{memory['$P']}const uint8_t *const *rows, uint8_t *out, uint32_t y"
    head = f"static void run_{index}({parameters})\n{{\n"
    head += "    (void)arenas;\n" if memory["$P"] and layer.workspace_at is None else ""
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
