"""The user's C functions: how they are declared, and what stands for them while a build is checked.

A network with operators that the user computes has ``<name>_opaque.h``. The user writes these
functions, in ``<name>_opaque.c`` of the project or elsewhere; what is linked without them names
them.
"""

from tvm_serenity.firmware.c_names import identifier
from tvm_serenity.firmware.emit.c import banner, file, join
from tvm_serenity.firmware.program import Program

HEADER, SOURCE = "opaque.h", "opaque.c"
STUB = "opaque_stub.c"
"""Functions that fill their outputs with zeros: on no board."""

TYPE = """\
#ifndef SERENITY_OPAQUE
#define SERENITY_OPAQUE
/* A call of an operator. Inputs and outputs are in the model's order, an input that is left out
   is NULL. Scratch that the model lists as an input lies in the workspace: nothing is in it
   before the call, and it may be written. */
typedef struct {
    const void *const *inputs;
    const uint32_t *input_bytes;
    uint32_t input_count;
    void *const *outputs;
    const uint32_t *output_bytes;
    uint32_t output_count;
    void *workspace; /* for this call alone; NULL where there are no bytes */
    uint32_t workspace_bytes;
    const uint8_t *options; /* the operator's custom options, as in the model; NULL without any */
    uint32_t options_bytes;
} serenity_opaque;
#endif
"""


def function_of(name: str) -> str:
    """Return what the user's function for the operators called ``name`` is called in C."""
    return f"serenity_opaque_{identifier(name)}"


def opaque_header(program: Program) -> str:
    """Return ``opaque.h``."""
    guard = f"{program.name.upper()}_OPAQUE_H"
    calls = [program.kernel[step.kernels[0]].user for step in program.steps]
    return join(
        [
            banner(program, "functions that you write")
            + f"#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n\n"
            '#ifdef __cplusplus\nextern "C" {\n#endif\n',
            TYPE,
            "/* What is linked without these names them. They must depend on their inputs alone,\n"
            f"   and leave nothing behind: they are called in any order. All pointers are aligned\n"
            f"   to {program.alignment_bytes} bytes, except scratch at other offsets in the "
            "model's own plan. */",
            *(
                f"/* {name}: {calls.count(name)} in the network. */\n" * (name in calls)
                + f"void {function_of(name)}(const serenity_opaque *call);"
                for name in program.users
            ),
            "#ifdef __cplusplus\n}\n#endif\n\n#endif\n",
        ]
    )


def stub(program: Program) -> str:
    """Return functions that fill their outputs with zeros."""
    functions = [
        f"void {function_of(name)}(const serenity_opaque *call)\n{{\n"
        "    for (uint32_t i = 0; i < call->output_count; ++i) {\n"
        "        (void)memset(call->outputs[i], 0, call->output_bytes[i]);\n    }\n}\n"
        for name in program.users
    ]
    return join([f'#include "{file(program, HEADER)}"\n\n#include <string.h>\n', *functions])
