"""The user's C functions for opaque operators: their header, and stubs for checks of a build.

A network with operators that the user computes has ``<name>_opaque.h``. The user writes these
functions, in ``<name>_opaque.c`` of the project or elsewhere; without them the link fails, and the
linker names them.
"""

from tvm_serenity.firmware.c_names import identifier
from tvm_serenity.firmware.emit.c import banner, file, join
from tvm_serenity.firmware.program import Program

HEADER, SOURCE = "opaque.h", "opaque.c"
STUB = "opaque_stub.c"
"""The file of stubs, which fill their outputs with zeros; never part of a project."""

TYPE = """\
#ifndef SERENITY_OPAQUE
#define SERENITY_OPAQUE
/* A call of an operator. Inputs and outputs are in the model's order; an omitted input is NULL.
   An input that the model uses as scratch lies in the workspace: its content is undefined before
   the call, and the function may write to it. */
typedef struct {
    const void *const *inputs;
    const uint32_t *input_bytes;
    uint32_t input_count;
    void *const *outputs;
    const uint32_t *output_bytes;
    uint32_t output_count;
    void *workspace; /* for this call only; NULL if workspace_bytes is 0 */
    uint32_t workspace_bytes;
    const uint8_t *options; /* the operator's custom options in the model; NULL if none */
    uint32_t options_bytes;
} serenity_opaque;
#endif
"""


def function_of(name: str) -> str:
    """Return the C name of the user's function for the operators called ``name``."""
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
            "/* Functions that you define. Their outputs depend on their inputs only; they keep\n"
            "   no state: they are called in any order. All pointers are aligned to\n"
            f"   {program.alignment_bytes} bytes, except scratch at other offsets in the "
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
    """Return C stubs of the user's functions, which fill their outputs with zeros."""
    functions = [
        f"void {function_of(name)}(const serenity_opaque *call)\n{{\n"
        "    for (uint32_t i = 0; i < call->output_count; ++i) {\n"
        "        (void)memset(call->outputs[i], 0, call->output_bytes[i]);\n    }\n}\n"
        for name in program.users
    ]
    return join([f'#include "{file(program, HEADER)}"\n\n#include <string.h>\n', *functions])
