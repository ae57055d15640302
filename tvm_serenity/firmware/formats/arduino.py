"""An Arduino library with an example: it fills the input, runs, and prints a class."""

import numpy as np

from tvm_serenity.firmware.emit.c import C_TYPES, banner, file, join, symbol
from tvm_serenity.firmware.emit.origin import about_origin, with_licence
from tvm_serenity.firmware.emit.project import Files, Layout, network
from tvm_serenity.firmware.program import Program, Tensor

CONTRACT = (
    "/* Arduino has no place for compiler options: a product that is added is rounded twice. */\n"
    "#if defined(__GNUC__) && !defined(__clang__)\n"
    '#pragma GCC optimize("fp-contract=off")\n'
    "#endif\n"
)


def arduino(program: Program, layout: Layout) -> Files:
    """Return an Arduino library, named as the program is."""
    name = program.name
    made = {f"src/{n}": data for n, data in network(program, layout).items()}
    kernels = f"src/{file(program, 'kernels.c')}"
    made[kernels] = CONTRACT.encode() + made[kernels]
    texts = {
        "library.properties": f"name={name}\nversion=1.0.0\nauthor=tvm-serenity\n"
        f"maintainer=tvm-serenity\nsentence=The network {name} in C.\n"
        "paragraph=Kernels and weights, one static arena, no heap.\ncategory=Data Processing\n"
        f"url=https://tvm.apache.org\narchitectures=*\nincludes={name}.h\n",
        "README.md": f"# {name}\n\nThe network `{name}` in C. `examples/{name}` runs it.\n",
        f"src/{name}.h": f'{banner(program, "interface")}#include "{file(program, "model.h")}"\n',
        f"examples/{name}/{name}.ino": sketch(program),
    }
    files = with_licence({path: text.encode() for path, text in texts.items()})
    return {**made, **files, **about_origin(name, layout.metadata or {})}


def sketch(program: Program) -> str:
    """Return the example: inputs from a function that stands for a sensor, the largest output."""
    fields = [t for t in program.inputs if program.tensors[t].initial is None]
    parts = [
        f"// Runs the network {program.name} and prints the class it finds.\n"
        f"#include <{program.name}.h>\n#include <math.h>\n#include <string.h>\n",
        "// Stands for a sensor: the value that element i of an input measures.\n"
        "static float reading(uint32_t i) { return 0.5f + 0.5f * sinf(0.1f * (float)i); }\n",
        *(_stored(program, program.tensors[t]) for t in _kinds(program)),
        _states(program),
        "void setup() {\n  Serial.begin(115200);\n" + _first_states(program) + "}\n",
        "void loop() {\n"
        + "".join(_filled(program, program.tensors[t]) for t in fields)
        + (_runs(program) if program.fed is None else _feeds(program))
        + _classified(program)
        + "  delay(1000);\n}\n",
    ]
    return join(parts)


def _kinds(program: Program) -> list[int]:
    """The inputs that are measured."""
    return [t for t in program.given if program.tensors[t].initial is None]


def _macro(program: Program, role: str, tensor: Tensor) -> str:
    return f"{program.name.upper()}_{role}_{tensor.name.upper()}"


def _stored(program: Program, tensor: Tensor) -> str:
    """A function from a measured value to what the input stores."""
    ctype, macro = C_TYPES[tensor.dtype], _macro(program, "INPUT", tensor)
    head = f"static {ctype} stored_{tensor.name}(float value) {{\n"
    if tensor.quantisation is None:
        return f"{head}  return ({ctype})value;\n}}\n"
    low, high = np.iinfo(tensor.dtype).min, np.iinfo(tensor.dtype).max
    return (
        f"{head}  const long q = lroundf(value / {macro}_SCALE) + {macro}_ZERO_POINT;\n"
        f"  return ({ctype})(q < {low} ? {low} : q > {high} ? {high} : q);\n}}\n"
    )


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


def _filled(program: Program, tensor: Tensor) -> str:
    ctype, macro = C_TYPES[tensor.dtype], _macro(program, "INPUT", tensor)
    return (
        f"  {ctype} *const to_{tensor.name} = {symbol(program, f'input_{tensor.name}')}();\n"
        f"  for (uint32_t i = 0; i < {macro}_ELEMENTS; ++i) "
        f"to_{tensor.name}[i] = stored_{tensor.name}(reading(i));\n"
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
        f"row[i] = stored_{fed.name}(reading(y * ({elements}) + i));\n"
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
    """The index of the first output's largest element."""
    out = program.tensors[program.outputs[0]]
    elements = f"{_macro(program, 'OUTPUT', out)}_ELEMENTS"
    return (
        f"  const {C_TYPES[out.dtype]} *const scores = {symbol(program, f'output_{out.name}')}();\n"
        f"  uint32_t best = 0;\n  for (uint32_t i = 1; i < {elements}; ++i) {{\n"
        "    if (scores[i] > scores[best]) best = i;\n  }\n"
        '  Serial.print("class ");\n  Serial.println(best);\n'
    )
