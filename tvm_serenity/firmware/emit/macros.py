"""``macros.c``: a function that returns the macros of ``model.h``, for ``verify``."""

from collections.abc import Sequence

from tvm_serenity.firmware.emit.c import file, join
from tvm_serenity.firmware.program import Program

MACROS = "macros.c"


def macros_source(program: Program, names: Sequence[str]) -> str:
    """Return ``macros.c``, which defines ``int32_t serenity_macro(number, value)``.

    The function sets ``value`` to the value of macro ``names[number]`` and returns 1; it returns 0
    if ``model.h`` does not define the macro.
    """
    cases = "\n".join(
        f"#if defined({name})\n    case {i}:\n        *value = (double)({name});\n"
        "        return 1;\n#endif"
        for i, name in enumerate(names)
    )
    return join(
        [
            f'#include "{file(program, "model.h")}"\n',
            "int32_t serenity_macro(uint32_t number, double *value)\n{\n    switch (number) {\n"
            f"{cases}\n    default:\n        *value = 0;\n        return 0;\n    }}\n}}\n",
        ]
    )
