"""An Arduino library with an example: it fills the input, runs, and prints a class."""

from tvm_serenity.firmware.emit.c import C_TYPES, banner, file, join, symbol
from tvm_serenity.firmware.emit.interface.by_number import real, stored
from tvm_serenity.firmware.emit.interface.classify import scores
from tvm_serenity.firmware.emit.project import Files, Layout
from tvm_serenity.firmware.formats.library import VERSION, completed, placed, with_contract
from tvm_serenity.firmware.program import Program, Tensor


def written(program: Program, layout: Layout) -> Files:
    """Return an Arduino library, named as the program is."""
    name = program.name
    made = with_contract(program, placed(program, layout, "src/", "src/"), "src/")
    texts = {
        "library.properties": f"name={name}\nversion={VERSION}\nauthor=tvm-serenity\n"
        f"maintainer=tvm-serenity\nsentence=The network {name} in C.\n"
        "paragraph=Kernels and weights, one static arena, no heap.\ncategory=Data Processing\n"
        f"url=https://tvm.apache.org\narchitectures=*\nincludes={name}.h\n",
        "README.md": f"# {name}\n\nThe network `{name}` in C. `examples/{name}` runs it.\n",
        f"src/{name}.h": f'{banner(program, "interface")}#include "{file(program, "model.h")}"\n',
        f"examples/{name}/{name}.ino": sketch(program),
    }
    return completed(program, layout, made, texts)


def sketch(program: Program) -> str:
    """Return the example: inputs from a function that stands for a sensor, the class."""
    fields = [t for t in program.inputs if program.tensors[t].initial is None]
    parts = [
        f"// Runs the network {program.name} and prints the class it finds.\n"
        f"#include <{program.name}.h>\n#include <math.h>\n#include <string.h>\n",
        "// Stands for a sensor: the value that element i of an input measures.\n"
        "static float reading(uint32_t i) { return 0.5f + 0.5f * sinf(0.1f * (float)i); }\n",
        _states(program),
        "void setup() {\n  Serial.begin(115200);\n" + _first_states(program) + "}\n",
        "void loop() {\n"
        + "".join(_filled(program, t) for t in fields)
        + (_runs(program) if program.fed is None else _feeds(program))
        + _classified(program)
        + "  delay(1000);\n}\n",
    ]
    return join(parts)


def _macro(program: Program, role: str, tensor: Tensor) -> str:
    return f"{program.name.upper()}_{role}_{tensor.name.upper()}"


def _states(program: Program) -> str:
    """Memory for what the network keeps from run to run."""
    return "".join(
        f"static {C_TYPES[t.dtype]} {t.name}[{_macro(program, 'INPUT', t)}_ELEMENTS];\n"
        for t in (program.tensors[i] for i in program.inputs)
        if t.initial is not None
    )


def _first_states(program: Program) -> str:
    return "".join(
        f"  for (uint32_t i = 0; i < {_macro(program, 'INPUT', t)}_ELEMENTS; ++i) "
        f"{t.name}[i] = {_macro(program, 'INPUT', t)}_INITIAL;\n"
        for t in (program.tensors[i] for i in program.inputs)
        if t.initial is not None
    )


def _filled(program: Program, index: int) -> str:
    tensor = program.tensors[index]
    ctype, macro = C_TYPES[tensor.dtype], _macro(program, "INPUT", tensor)
    return (
        f"  {ctype} *const to_{tensor.name} = {symbol(program, f'input_{tensor.name}')}();\n"
        f"  for (uint32_t i = 0; i < {macro}_ELEMENTS; ++i) "
        f"to_{tensor.name}[i] = {stored(program, program.given.index(index))}(reading(i));\n"
    )


def _runs(program: Program) -> str:
    states = [program.tensors[t] for t in program.inputs if program.tensors[t].initial is not None]
    given = ["nullptr"] * (len(program.inputs) - len(states)) + [t.name for t in states]
    made = ["nullptr"] * (len(program.outputs) - len(states)) + [t.name for t in states]
    return (
        f"  const {symbol(program, 'inputs')} inputs = {{{', '.join(given)}}};\n"
        f"  const {symbol(program, 'outputs')} outputs = {{{', '.join(made)}}};\n"
        f"  if ({symbol(program, 'run')}(&inputs, &outputs) != 0) {{\n"
        '    Serial.println("failed");\n    return;\n  }\n'
    )


def _feeds(program: Program) -> str:
    assert program.fed is not None
    fed = program.tensors[program.fed.tensor]
    macro, ctype = _macro(program, "INPUT", fed), C_TYPES[fed.dtype]
    elements = f"{macro}_ROW_BYTES / sizeof({ctype})"
    states = [t for t in program.inputs if program.tensors[t].initial is not None]
    made = program.outputs[len(program.outputs) - len(states) :]
    before, after = (
        "".join(_copied(program, role, t, state) for t, state in zip(ts, states, strict=True))
        for role, ts in (("input", states), ("output", made))
    )
    return (
        f"{before}  static {ctype} row[{elements}];\n"
        f"  for (uint32_t y = 0; y < {macro}_ROWS; ++y) {{\n"
        f"    for (uint32_t i = 0; i < {elements}; ++i) "
        f"row[i] = {stored(program, 0)}(reading(y * ({elements}) + i));\n"
        f"    if ({symbol(program, 'feed_row')}(row) < 0) {{\n"
        '      Serial.println("failed");\n      return;\n    }\n  }\n'
        f"{after}"
    )


def _copied(program: Program, role: str, tensor: int, state: int) -> str:
    """A state copied into the arena, or out of it."""
    kept = program.tensors[state].name
    inside = f"{symbol(program, f'{role}_{program.tensors[tensor].name}')}()"
    to, of = (inside, kept) if role == "input" else (kept, inside)
    return f"  memcpy({to}, {of}, sizeof {kept});\n"


def _classified(program: Program) -> str:
    """The class that the network finds, or the first element where its output has no classes."""
    if scores(program) is None:
        out = program.tensors[program.outputs[0]]
        first = f"{symbol(program, f'output_{out.name}')}()[0]"
        return f"  Serial.println({real(program, 0)}({first}));\n"
    return (
        f"  const {symbol(program, 'class')} found = {symbol(program, 'classify')}();\n"
        '  Serial.print("class ");\n  Serial.print(found.index);\n  Serial.print(" ");\n'
        "  Serial.println(found.label);\n"
    )
