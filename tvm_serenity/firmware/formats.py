"""The forms a program is written in: a project, a Model Library Format tar, Zephyr, Arduino."""

import io
import json
import tarfile
from collections.abc import Callable, Mapping

from tvm_serenity.firmware.emit.c import C_TYPES, banner, join, symbol
from tvm_serenity.firmware.emit.project import Files, Layout, metadata, project
from tvm_serenity.firmware.program import Program

Writer = Callable[[Program, Layout], Files]

HEADERS = ("model.h", "kernels.h", "weights.h")
SOURCES = ("model.c", "kernels.c", "weights.c")
MLF_VERSION = 7
"""The last version of the Model Library Format that microTVM wrote."""


def _sources(program: Program, layout: Layout) -> Files:
    """The network alone, without board, harness and build files."""
    made = project(program, layout)
    return {name: made[name] for name in (*HEADERS, *SOURCES, *program.objects)}


def model_library(program: Program, layout: Layout) -> Files:
    """Return ``<name>.tar``: metadata, C sources and headers, parameters.

    ``codegen/host/include/tvmgen_<name>.h`` has microTVM's interface.
    """
    from tvm_serenity.firmware.verify import packed

    inside: Files = {
        "metadata.json": (json.dumps(_mlf_metadata(program, layout), indent=2) + "\n").encode(),
        f"codegen/host/include/tvmgen_{program.name}.h": _tvmgen(program).encode(),
        f"parameters/{program.name}.npz": packed({c.name: c.array for c in program.constants}),
    }
    for name, data in _sources(program, layout).items():
        folder = "include" if name.endswith(".h") else "src"
        inside[f"codegen/host/{folder}/{name}"] = data
    return {f"{program.name}.tar": _tar(inside)}


def _mlf_metadata(program: Program, layout: Layout) -> dict[str, object]:
    arena = sum(program.arena_bytes.values())
    io_bytes = sum(program.tensors[t].size_bytes for t in (*program.inputs, *program.outputs))
    main = {
        "device": 1,
        "workspace_size_bytes": arena,
        "constants_size_bytes": program.constant_bytes,
        "io_size_bytes": io_bytes,
    }
    kernels = [
        {"function_name": symbol(program, k.name), "workspace": [{"device": 1}]}
        for k in program.kernels
    ]
    module = {
        "model_name": program.name,
        "target": [{"kind": "c", "keys": ["arm_cpu", "cpu"], "mcpu": layout.board.core.name}],
        "memory": {"functions": {"main": [main], "operator_functions": kernels}},
        "executors": ["aot"],
        "style": "full-model",
        "serenity": metadata(program, layout),
    }
    return {"version": MLF_VERSION, "modules": {program.name: module}}


def _tvmgen(program: Program) -> str:
    name = f"tvmgen_{program.name}"
    structures, copied = [], []
    for role, tensors, const in (
        ("inputs", program.inputs, "const "),
        ("outputs", program.outputs, ""),
    ):
        fields = "\n".join(f"    void *{program.tensors[t].name};" for t in tensors)
        structures.append(f"struct {name}_{role} {{\n{fields}\n}};\n")
        values = ", ".join(
            f"({const}{C_TYPES[program.tensors[t].dtype]} *){role}->{program.tensors[t].name}"
            for t in tensors
        )
        copied.append(f"    const {symbol(program, role)} own_{role} = {{{values}}};")
    body = "\n".join(copied)
    guard = f"{name.upper()}_H"
    return join(
        [
            banner(program, "the interface that microTVM generated")
            + f'#ifndef {guard}\n#define {guard}\n\n#include "model.h"\n\n'
            f"#define {name.upper()}_WORKSPACE_SIZE {sum(program.arena_bytes.values())}\n",
            *structures,
            f"static inline int32_t {name}_run(\n"
            f"    struct {name}_inputs *inputs, struct {name}_outputs *outputs)\n{{\n{body}\n"
            f"    return {symbol(program, 'run')}(&own_inputs, &own_outputs);\n}}\n",
            "#endif\n",
        ]
    )


def _tar(inside: Mapping[str, bytes]) -> bytes:
    """The same bytes for the same files: no times, no owners."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT) as file:
        for name in sorted(inside):
            entry = tarfile.TarInfo(f"./{name}")
            entry.size = len(inside[name])
            file.addfile(entry, io.BytesIO(inside[name]))
    return data.getvalue()


def zephyr(program: Program, layout: Layout) -> Files:
    """Return a Zephyr module: add its path to ZEPHYR_EXTRA_MODULES, set its Kconfig option."""
    option = f"SERENITY_{program.name.upper()}"
    made = {f"src/{name}": data for name, data in _sources(program, layout).items()}
    sources = " ".join(f"src/{name}" for name in (*SOURCES, *program.objects))
    texts = {
        "zephyr/module.yml": f"name: {program.name}\nbuild:\n  cmake: .\n  kconfig: Kconfig\n",
        "Kconfig": f'config {option}\n\tbool "The network {program.name}"\n\tdefault y\n'
        "\thelp\n\t  Integer kernels in C, one static arena, no heap.\n",
        "CMakeLists.txt": f"if(CONFIG_{option})\n  zephyr_library_named({program.name})\n"
        f"  zephyr_library_sources({sources})\n  zephyr_include_directories(src)\nendif()\n",
    }
    return {**made, **{name: text.encode() for name, text in texts.items()}}


def arduino(program: Program, layout: Layout) -> Files:
    """Return an Arduino library with an example."""
    made = {f"src/{name}": data for name, data in _sources(program, layout).items()}
    run = symbol(program, "run")
    nulls = {role: ", ".join(["nullptr"] * len(tensors)) for role, tensors in _roles(program)}
    texts = {
        "library.properties": f"name={program.name}\nversion=1.0.0\nauthor=tvm-serenity\n"
        f"maintainer=tvm-serenity\nsentence=The network {program.name} in C.\n"
        "paragraph=Integer kernels, one static arena, no heap.\ncategory=Data Processing\n"
        "architectures=*\n"
        f"includes={program.name}.h\n",
        f"src/{program.name}.h": f'{banner(program, "interface")}#include "model.h"\n',
        f"examples/{program.name}/{program.name}.ino": f"#include <{program.name}.h>\n\n"
        "void setup() { Serial.begin(115200); }\n\nvoid loop() {\n"
        f"  const {symbol(program, 'inputs')} inputs = {{{nulls['inputs']}}};\n"
        f"  const {symbol(program, 'outputs')} outputs = {{{nulls['outputs']}}};\n"
        f"  Serial.println({run}(&inputs, &outputs));\n  delay(1000);\n}}\n",
    }
    return {**made, **{name: text.encode() for name, text in texts.items()}}


def _roles(program: Program) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return ("inputs", program.inputs), ("outputs", program.outputs)


WRITERS: dict[str, Writer] = {
    "project": project,
    "mlf": model_library,
    "zephyr": zephyr,
    "arduino": arduino,
}
FORMATS = tuple(WRITERS)


def files(program: Program, layout: Layout, name: str) -> Files:
    """Return the files of ``program`` in the form ``name``, one of ``FORMATS``."""
    return WRITERS[name](program, layout)
