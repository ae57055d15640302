"""``main.c``, an example, and ``harness.c``, the program behind ``serenity run`` and ``verify``."""

from textwrap import dedent, indent

from tvm_serenity.firmware.emit import caller
from tvm_serenity.firmware.emit.c import PORT_HEADER, file, has_port, join, symbol
from tvm_serenity.firmware.emit.transfers import counting_port
from tvm_serenity.firmware.program import Program


def example(program: Program, external: bool, timed: bool) -> str:
    """Return ``main.c``: one run on an input of zeros; ``timed``: it prints the clock's ticks."""
    steps = "Fill the inputs, run, read the outputs."
    if program.fed is not None:
        steps = "Feed rows as they arrive, then read the outputs."
    if program.moving is not None:
        steps = "Feed rows as they arrive; the outputs are complete when feed_row returns 0."
    return join(
        [
            f"/* {program.name}: an example. {steps} */\n{_includes(program)}",
            caller.memory(program, external),
            _row(program),
            "int main(void)\n{\n"
            + "    port_clock_start();\n    const uint64_t before = port_clock();\n" * timed
            + (_runs(program, external) if program.fed is None else _feeds(program, external))
            + '    port_report("ticks", port_clock() - before);\n' * timed
            + f'    port_puts("{program.name} has run");\n    return 0;\n}}\n',
        ]
    )


def _includes(program: Program) -> str:
    return (
        f'#include "{file(program, "model.h")}"\n\n#include <stddef.h>\n#include <string.h>\n\n'
        '#include "port.h"\n'
    )


def _row(program: Program) -> str:
    """Return the buffer of an input row, aligned for any element type."""
    if program.fed is None:
        return ""
    return f"static uint64_t row[{-(-program.fed.row_bytes // 8)}];\n"


def _zeros(program: Program, external: bool) -> str:
    return "".join(
        f"    (void)memset({caller.inside(program, 'input', t, external)}, 0, "
        f"{program.tensors[t].size_bytes});\n"
        for t in program.inputs
    )


def _runs(program: Program, external: bool) -> str:
    return (
        f"{caller.in_arena(program)}\n{_zeros(program, external)}"
        f"    if ({caller.run(program, external, 'inputs', 'outputs')} != 0) {{\n"
        "        return 1;\n    }\n"
    )


def _feeds(program: Program, external: bool) -> str:
    return (
        f"{_zeros(program, external)}    int32_t left;\n    do {{\n"
        f"        left = {caller.feed(program, external, '(const void *)row')};\n"
        "    } while (left > 0);\n"
    )


OUTPUT_TAG = 0x8000_0000
"""The tag of the first output in the harness's results; tensors that are traced have lower ones."""


def harness(program: Program, external: bool) -> str:
    """Return ``harness.c``, which runs the network on inputs in files and writes its results.

    ``input<i>.bin`` holds one or more inputs, one after another.
    ``results.bin`` gets records of a tag, a size and data: each traced tensor (tag: its number),
    and after each run its outputs (tag: :data:`OUTPUT_TAG` and on).
    """
    name = symbol(program, "trace")
    timed = _timed_run(program, external) if program.fed is None else _timed_rows(program, external)
    body = (
        f"{_read(program, external)}{timed}"
        'port_report("stack", port_stack_used());\n'
        + 'port_report("transferred", transferred);\n'
        * has_port(program)
        + 'port_report("status", (uint64_t)(uint32_t)status);\n'
        "if (status != 0) {\n    return 1;\n}\n"
        f"{_written(program, external)}"
    )
    return join(
        [
            f"/* {program.name}: run on each input in input<i>.bin, write results.bin, report. */\n"
            f'{_includes(program)}#include "port_files.h"\n',
            caller.memory(program, external),
            _row(program),
            _windows(program),
            _counting(program),
            "static int32_t put(uint32_t tag, const void *data, uint32_t size)\n{\n"
            "    const uint32_t head[2] = {tag, size};\n"
            "    const int32_t status = port_append(head, (uint32_t)sizeof head);\n"
            "    return status == 0 ? port_append(data, size) : status;\n}\n",
            "#if defined(SERENITY_TRACE)\n"
            f"void {name}(uint32_t tensor, const void *data, uint32_t size);\n\n"
            f"void {name}(uint32_t tensor, const void *data, uint32_t size)\n{{\n"
            "    (void)put(tensor, data, size);\n}\n#endif\n",
            "int main(void)\n{\n"
            '    if (port_create("results.bin") != 0) {\n        return 3;\n    }\n'
            f"    port_clock_start();\n{_repeated(program, body)}}}\n",
        ]
    )


def _repeated(program: Program, body: str) -> str:
    """Return the lines of a run, in a loop over all inputs if there are any."""
    if not program.given:
        return indent(f"{body}return 0;\n", "    ")
    return indent(f"for (uint32_t run = 0;; ++run) {{\n{indent(body, '    ')}}}\n", "    ")


def _counting(program: Program) -> str:
    """The port of a network with transfers, which counts their bytes."""
    if not has_port(program):
        return ""
    return f'#include "{file(program, PORT_HEADER)}"\n\n{counting_port(program, "transferred")}'


def _timed_run(program: Program, external: bool) -> str:
    return (
        f"{dedent(caller.in_arena(program))}\nconst uint64_t before = port_clock();\n"
        f"const int32_t status = {caller.run(program, external, 'inputs', 'outputs')};\n"
        "const uint64_t after = port_clock();\n"
        'port_report("ticks", after - before);\n'
    )


def _timed_rows(program: Program, external: bool) -> str:
    """Return the lines that feed rows from a file; the ticks of reading are not counted."""
    assert program.fed is not None
    size, moving = program.fed.row_bytes, program.moving
    anew = "" if moving is None else _step_begins(moving.step)
    kept = "" if moving is None else _outputs_kept(program, external)
    first, ends = f"(run * {program.rows_fed}u + y)", _ends("y == 0u && run != 0u")
    begun = "" if moving is None else f"{caller.restart(program, external)};\nwindow = 0;\n"
    return (
        f"{begun}uint64_t ticks = 0;\nint32_t status = -1;\n"
        f"for (uint32_t y = 0; y < {program.rows_fed}u; ++y) {{\n{anew}"
        f'    const int32_t got = port_read_at("input0.bin", {first} * {size}u, row, {size});\n'
        f"{indent(ends, '    ')}"
        f"    if (got != {size}) {{\n"
        '        port_puts("input0.bin is missing or too short");\n'
        "        return 2;\n    }\n"
        "    const uint64_t before = port_clock();\n"
        f"    status = {caller.feed(program, external, '(const void *)row')};\n"
        f"    ticks += port_clock() - before;\n{kept}}}\n"
        'port_report("ticks", ticks);\n'
    )


def _ends(where: str) -> str:
    """Return the lines that end the program where a further run has no input."""
    return f"if ({where} && got <= 0) {{\n    return 0;\n}}\n"


def _step_begins(step: int) -> str:
    """Return the lines that restart the count: only the last step counts, as all do the same."""
    return f"    if (y % {step}u == 0u) {{\n        ticks = 0;\n    }}\n"


def _outputs_kept(program: Program, external: bool) -> str:
    """Return the lines that keep the outputs of each window until they are written."""
    lines = ["    if (status == 0) {"]
    for i, t in enumerate(program.outputs):
        at, size = caller.inside(program, "output", t, external), program.tensors[t].size_bytes
        lines.append(f"        (void)memcpy(windows{i} + window * {size}u, {at}, {size});")
    lines += ["        ++window;", "    }"]
    return "".join(f"{line}\n" for line in lines)


def _windows(program: Program) -> str:
    """Return the memory for the outputs of all windows."""
    if program.moving is None:
        return ""
    sizes = [program.tensors[t].size_bytes * program.windows for t in program.outputs]
    return (
        "".join(f"static uint8_t windows{i}[{max(size, 1)}];\n" for i, size in enumerate(sizes))
        + "static uint32_t window;\n"
    )


def _read(program: Program, external: bool) -> str:
    """Return the lines that read the inputs of a run which are not fed in rows."""
    first = len(program.given) - len(program.inputs)
    lines = []
    for i, t in enumerate(program.inputs, start=first):
        size, at = program.tensors[t].size_bytes, caller.inside(program, "input", t, external)
        ends = _ends("run != 0u") if i == first else ""
        lines.append(
            f'{{\n    const int32_t got = port_read_at("input{i}.bin", run * {size}u, '
            f"{at}, {size});\n"
            f"{indent(ends, '    ')}    if (got != {size}) {{\n"
            f'        port_puts("input{i}.bin is missing or too short");\n'
            "        return 2;\n    }\n}\n"
        )
    return "".join(lines)


def _written(program: Program, external: bool) -> str:
    lines = []
    for i, t in enumerate(program.outputs):
        at = caller.inside(program, "output", t, external)
        at = at if program.moving is None else f"windows{i}"
        size = program.tensors[t].size_bytes * program.windows
        lines.append(f"if (put({OUTPUT_TAG + i:#x}u, {at}, {size}) != 0) {{\n    return 3;\n}}\n")
    return "".join(lines)
