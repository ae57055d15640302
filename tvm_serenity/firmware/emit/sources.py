"""``kernels.*`` and ``weights.*`` of a program."""

from importlib import resources

from tvm_serenity.architectures import architecture
from tvm_serenity.firmware.emit.c import (
    C_TYPES,
    PORT_HEADER,
    array_definition,
    banner,
    file,
    join,
    prototype,
    symbol,
)
from tvm_serenity.firmware.integers import plain
from tvm_serenity.firmware.kernels.sources import texts
from tvm_serenity.firmware.program import Program


def support(name: str) -> str:
    """Return the text of a file that is the same in every project."""
    path = resources.files("tvm_serenity.firmware") / "project" / name
    return path.read_text(encoding="utf-8")


def board_port(family: str) -> dict[str, str]:
    """Return the files by name that start programs on cores of an architecture and print there."""
    own = {name: f"{family}/{name}" for name in architecture(family).files}
    shared = ("port.h", "port_files.h", "port_board.c", "semihosting.h", "startup.h")
    return {name: support(path) for name, path in ({name: name for name in shared} | own).items()}


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
    """Return ``kernels.c``: the used files of the kernel library, then the kernels."""
    written = [k for k in program.kernels if k.body]
    return join(
        [
            banner(program, "kernels")
            + f'#include "{file(program, "kernels.h")}"\n'
            + (f'#include "{file(program, "opaque.h")}"\n' if program.users else "")
            + (f'#include "{file(program, PORT_HEADER)}"\n' if program.copies else "")
            + "\n#include <math.h>\n"
            "#include <stddef.h>\n#include <string.h>\n",
            *texts(file for kernel in written for file in kernel.support),
            *(f"{prototype(program, k)}\n{{\n{plain(k.body).rstrip()}\n}}\n" for k in written),
        ]
    )


def weights_header(program: Program) -> str:
    """Return ``weights.h``."""
    guard = f"{program.name.upper()}_WEIGHTS_H"
    kind = "extern" if program.copied else "extern const"
    lines = [
        f"{kind} {C_TYPES[str(c.array.dtype)]} {symbol(program, c.name)}[{max(c.array.size, 1)}];"
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
    """Return ``weights.c``: constants in flash, and constants that are copied to RAM at start."""
    return join(
        [
            banner(program, "constants")
            + f'#include "{file(program, "weights.h")}"\n\n#include <math.h>\n',
            *(
                array_definition(
                    symbol(program, c.name), c.array, program.alignment(i), not program.copied
                )
                for i, c in enumerate(program.constants)
            ),
        ]
    )
