"""The walker: C tables, a function for each step, and the loop that follows the sequence."""

from importlib import resources

from tvm_serenity.firmware.emit.arguments import base, call, fixed, shown
from tvm_serenity.firmware.emit.c import C_TYPES, join, symbol
from tvm_serenity.firmware.emit.table import blocks, states, tables, width
from tvm_serenity.firmware.program import (
    Argument,
    Data,
    Param,
    Program,
    Row,
    RowNumber,
    Scratch,
    Step,
)

STATIC = {"$P": "", "$A": "", "$F": "", "$N": "next_call", "$T": "rows_taken"}
"""The replacements of the walker's marks for static arenas: no parameter, two variables."""

TOLD = {"$C": "        BEFORE(entry);\n", "$D": "        AFTER(entry);\n"}
"""The lines around a call of a network in two memories, whose caller may ask for them."""

MOVES = """\
        for (uint32_t i = 0; i < BLOCKS; ++i) {{
            {moved}({arenas}&blocks[i]);
        }}
"""
"""The lines that move the blocks of retained rows."""


def definitions(program: Program, external: bool) -> str:
    """Return tables, functions and walker; ``external``: the caller provides the arenas."""
    listed, memory = tables(program), _memory(program, external)
    return join(
        [
            _arena(program, external),
            listed.types,
            _library("types.h", memory),
            *(_run(program, i, memory) for i in range(len(program.steps))),
            listed.text,
            f"#define MOST_SLOTS {max([1, *(slots_of(s) for s in program.steps)])}\n"
            f"#define ENTRIES {len(program.calls)}\n"
            f"#define FED {0 if program.fed is None else program.fed.tensor}\n"
            f"#define LAYERS {len(program.steps)}\n",
            _library("walk.h", {**(TOLD if program.copies else dict.fromkeys(TOLD, "")), **memory}),
            "" if program.fed is None else _state(program, external) + _feeding(program, memory),
        ]
    )


def slots_of(step: Step) -> int:
    """Return the number of row pointers that a step's function receives."""
    return len(step.slots) + (step.moving is not None)


def body(program: Program, external: bool) -> tuple[str, ...]:
    """Return the lines of ``run``, or of ``restart`` if input rows arrive one by one."""
    memory = _memory(program, external)
    if program.fed is None:
        return (f"    (void)walk({memory['$A']}0);",)
    return (f"    {memory['$N']} = 0;", f"    {memory['$T']} = 0;")


def _arena(program: Program, external: bool) -> str:
    """Return the macro AT, the address of an offset in the concatenation of all arenas."""
    names = list(program.arena_bytes)
    regions = [name for name in names if program.arena_bytes[name]] or names[:1]
    text, begin = "", 0
    for region in regions:
        end = begin + program.arena_bytes[region]
        text += "" if region == regions[-1] else f"(offset) < {end}u ? "
        text += f"{base(region, external)} + ((offset) - {begin}u)"
        text += "" if region == regions[-1] else " : "
        begin = end
    return f"#define AT(offset) ({text})\n"


def _memory(program: Program, external: bool) -> dict[str, str]:
    if not external:
        return STATIC
    arenas = symbol(program, "arenas")
    return {
        "$P": f"const {arenas} *arenas, ",
        "$A": "arenas, ",
        "$F": f"{arenas} *arenas, ",
        "$N": "arenas->next_call",
        "$T": "arenas->rows_taken",
    }


def _feeding(program: Program, memory: dict[str, str]) -> str:
    """Return the function ``feed``: it takes the next row of the input, or of a moving window."""
    if program.moving is None:
        return _library("feed.h", memory)
    begin, follow = states(program)
    moves = moving = ""
    if program.moving.kept:
        moved = "move_up" if program.moving.phases == 1 else "next_phase"
        moves = MOVES.format(moved=moved, arenas=memory["$A"])
        moving = _library(f"{moved}.h", memory)
    slide = _library("slide.h", {"$M": moves, "$I": begin, "$S": follow, **memory})
    return blocks(program) + moving + slide


def _state(program: Program, external: bool) -> str:
    """Return the static variables of ``feed``; a moving window has ``next_call`` for the trace."""
    first = "static uint32_t next_call;\n" if program.moving is None else ""
    return "" if external else f"{first}static uint32_t rows_taken;\n\n"


def _library(name: str, memory: dict[str, str]) -> str:
    """Return a file of the walker with its marks replaced by ``memory``."""
    path = resources.files("tvm_serenity.firmware") / "walker" / name
    text = path.read_text(encoding="utf-8")
    for mark, stands_for in memory.items():
        text = text.replace(mark, stands_for)
    return text


def _run(program: Program, index: int, memory: dict[str, str]) -> str:
    """Return the function that calls a step's kernel for a row."""
    step, external = program.steps[index], bool(memory["$P"])
    parameters = f"{memory['$P']}const uint8_t *const *rows, uint8_t *out, uint32_t y"
    cases = [_call(program, step, name, external) for name in step.kernels]
    unused = {
        "arenas": external and not any(_placed(a) for a in step.arguments),
        "rows": not step.slots and step.moving is None,
        "out": step.row_tensor is None,
        "y": len(cases) == 1 and not step.merges and RowNumber() not in step.arguments,
    }
    lines = [f"(void){name};" for name, is_unused in unused.items() if is_unused]
    if len(cases) == 1:
        lines += cases
    elif step.variants == (0,) + (1,) * (step.height - 1):
        lines += ["if (y == 0u) {", f"    {cases[0]}", "} else {", f"    {cases[1]}", "}"]
    else:
        numbers = ", ".join(map(str, step.variants))
        lines.append(f"static const uint{width(step.variants)}_t variant[] = {{{numbers}}};")
        lines.append("switch (variant[y]) {")
        for number, case in enumerate(cases[1:], start=1):
            lines += [f"case {number}:", f"    {case}", "    break;"]
        lines += ["default:", f"    {cases[0]}", "    break;", "}"]
    lines += shown(program, step, external)
    text = "\n".join(f"    {line}" for line in lines)
    return f"static void run_{index}({parameters})\n{{\n{text}\n}}\n"


def _call(program: Program, step: Step, name: str, external: bool) -> str:
    kernel, slots, passed = program.kernel[name], 0, []
    for argument, param in zip(step.arguments, kernel.params, strict=True):
        given = fixed(program, argument, param.dtype, external, param.readonly)
        if given is None and isinstance(argument, Row):
            given = "out"
            if argument.tensor not in step.writes:
                given, slots = f"rows[{slots}]", slots + 1
            given = _typed(given, param)
        elif given is None and isinstance(argument, Scratch):
            given = f"({C_TYPES[param.dtype]} *)(uintptr_t)rows[{len(step.slots)}]"
        elif isinstance(argument, RowNumber):
            given = _typed("&y", param)
        passed.append(given or "&y")
    return call(program, name, passed)


def _placed(argument: Argument) -> bool:
    """Return whether an argument is an address in the arena, the same in every call."""
    return isinstance(argument, Data) or (isinstance(argument, Scratch) and not argument.bands)


def _typed(row: str, param: Param) -> str:
    if param.dtype == "uint8":
        return row
    const = "const " if param.readonly else ""
    return f"({const}{C_TYPES[param.dtype]} *)({const}void *){row}"
