"""``kernels.*``, ``weights.*``, ``main.c`` and the harness that runs and verifies a program."""

from importlib import resources

from tvm_serenity.firmware.emit.c import (
    C_TYPES,
    arenas,
    array_definition,
    banner,
    join,
    prototype,
    symbol,
)
from tvm_serenity.firmware.program import Program


def library(name: str) -> str:
    """Return a file of the kernel library: ``file.h``, or ``file.h:dtype`` written for a type."""
    file, _, dtype = name.partition(":")
    text = (resources.files("tvm_serenity.firmware") / "library" / file).read_text(encoding="utf-8")
    short, least, vector = ("u8", "0", "0") if dtype == "uint8" else ("s8", "-128", "1")
    return text.replace("$X", dtype).replace("$S", short).replace("$L", least).replace("$V", vector)


def support(name: str) -> str:
    """Return a file that every project has as it is."""
    file = resources.files("tvm_serenity.firmware") / "project" / name
    return file.read_text(encoding="utf-8")


def kernels_header(program: Program) -> str:
    """Return ``kernels.h``."""
    guard = f"{program.name.upper()}_KERNELS_H"
    return join(
        [
            banner(program, "kernels")
            + f"#ifndef {guard}\n#define {guard}\n\n#include <stdbool.h>\n#include <stdint.h>\n",
            "\n".join(f"{prototype(program, k)};" for k in program.kernels),
            "#endif\n",
        ]
    )


def kernels_source(program: Program) -> str:
    """Return ``kernels.c``: the library's files that are used, then every kernel."""
    written = [k for k in program.kernels if k.body]
    used = dict.fromkeys(name for k in written for name in k.support)
    return join(
        [
            banner(program, "kernels")
            + '#include "kernels.h"\n\n#include <math.h>\n#include <stddef.h>\n'
            "#include <string.h>\n",
            library("basics.h"),
            *(library(name) for name in used),
            *(f"{prototype(program, k)}\n{{\n{k.body.rstrip()}\n}}\n" for k in written),
        ]
    )


def weights_header(program: Program) -> str:
    """Return ``weights.h``."""
    guard = f"{program.name.upper()}_WEIGHTS_H"
    lines = [
        f"extern const {C_TYPES[str(c.array.dtype)]} {symbol(program, c.name)}"
        f"[{max(c.array.size, 1)}];"
        for c in program.constants
    ]
    return join(
        [
            banner(program, "constants")
            + f"#ifndef {guard}\n#define {guard}\n\n#include <stdbool.h>\n#include <stdint.h>\n",
            "\n".join(lines),
            "#endif\n",
        ]
    )


def weights_source(program: Program) -> str:
    """Return ``weights.c``: constants that stay in flash."""
    return join(
        [
            banner(program, "constants") + '#include "weights.h"\n\n#include <math.h>\n',
            *(
                array_definition(symbol(program, c.name), c.array, program.alignment_bytes)
                for c in program.constants
            ),
        ]
    )


def example(program: Program, external_arena: bool) -> str:
    """Return ``main.c``: one run on an input of zeros."""
    fill = "\n".join(
        f"    (void)memset({_access(program, 'input', t, external_arena)}, 0, "
        f"{program.tensors[t].size_bytes});"
        for t in program.inputs
    )
    return join(
        [
            f"/* {program.name}: an example. Fill the inputs, run, read the outputs. */\n"
            '#include "model.h"\n\n#include <stddef.h>\n#include <string.h>\n\n#include "port.h"\n',
            _arenas(program, external_arena),
            "int main(void)\n{\n"
            f"{_io(program)}\n"
            f"{fill}\n"
            f"    if ({_call(program, external_arena)} != 0) {{\n"
            "        return 1;\n    }\n"
            f'    port_puts("{program.name} has run");\n    return 0;\n}}\n',
        ]
    )


def harness(program: Program, external_arena: bool) -> str:
    """Return ``harness.c``: inputs from files, outputs, counts and traced tensors to files."""
    reads, writes = [], []
    for i, t in enumerate(program.inputs):
        size = program.tensors[t].size_bytes
        at = _access(program, "input", t, external_arena)
        reads += [
            f'    if (port_read("input{i}.bin", {at}, {size}) != {size}) {{',
            f'        port_puts("input{i}.bin is missing or too short");',
            "        return 2;",
            "    }",
        ]
    for i, t in enumerate(program.outputs):
        at = _access(program, "output", t, external_arena)
        writes += [
            f'    if (port_create("output{i}.bin") != 0 ||',
            f"        port_append({at}, {program.tensors[t].size_bytes}) != 0) {{",
            "        return 3;",
            "    }",
        ]
    name = symbol(program, "trace")
    return join(
        [
            f"/* {program.name}: run once on input<i>.bin, write output<i>.bin, report. */\n"
            '#include "model.h"\n\n#include <stddef.h>\n\n#include "port.h"\n',
            _arenas(program, external_arena),
            "#if defined(SERENITY_TRACE)\n"
            f"void {name}(uint32_t tensor, const void *data, uint32_t size);\n\n"
            f"void {name}(uint32_t tensor, const void *data, uint32_t size)\n{{\n"
            "    const uint32_t head[2] = {tensor, size};\n"
            "    (void)port_append(head, (uint32_t)sizeof head);\n"
            "    (void)port_append(data, size);\n}\n#endif\n",
            "int main(void)\n{\n"
            f"{_io(program)}\n" + "\n".join(reads) + "\n#if defined(SERENITY_TRACE)\n"
            '    if (port_create("trace.bin") != 0) {\n        return 3;\n    }\n#endif\n'
            "    port_clock_start();\n    const uint64_t before = port_clock();\n"
            f"    const int32_t status = {_call(program, external_arena)};\n"
            "    const uint64_t after = port_clock();\n"
            '    port_report("ticks", after - before);\n'
            '    port_report("stack", port_stack_used());\n'
            '    port_report("status", (uint64_t)(uint32_t)status);\n'
            + "\n".join(writes)
            + "\n    return status == 0 ? 0 : 1;\n}\n",
        ]
    )


def _access(program: Program, role: str, tensor: int, external_arena: bool) -> str:
    arenas = "&arenas_of_caller" if external_arena else ""
    return f"{symbol(program, f'{role}_{program.tensors[tensor].name}')}({arenas})"


def _call(program: Program, external_arena: bool) -> str:
    arenas = "&arenas_of_caller, " if external_arena else ""
    return f"{symbol(program, 'run')}({arenas}&inputs, &outputs)"


def _nulls(count: int) -> str:
    return ", ".join(["NULL"] * count)


def _arenas(program: Program, external_arena: bool) -> str:
    """The caller's memory, where the caller provides it."""
    if not external_arena:
        return ""
    fields = ", ".join(f"arena_{region}" for region in program.arena_bytes)
    made = f"static const {symbol(program, 'arenas')} arenas_of_caller = {{{fields}}};"
    return f"{arenas(program)}\n{made}"


def _io(program: Program) -> str:
    """Inputs and outputs that stay in the arena."""
    parts = (("inputs", program.inputs), ("outputs", program.outputs))
    return "\n".join(
        f"    const {symbol(program, role)} {role} = {{{_nulls(len(tensors))}}};"
        for role, tensors in parts
    )
