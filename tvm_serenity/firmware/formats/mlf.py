"""A Model Library Format archive, as microTVM wrote and TVM's ``TVMCPackage`` reads it."""

import io
import json
import struct
import tarfile
from collections.abc import Mapping, Sequence
from typing import Any

from tvm_serenity.firmware.emit.c import C_TYPES, banner, file, join, symbol
from tvm_serenity.firmware.emit.project import Files, Layout, metadata, network
from tvm_serenity.firmware.program import Array, Program

VERSION = 7
"""The last version of the Model Library Format that microTVM wrote (TVM 0.17)."""

LIST_MAGIC, ARRAY_MAGIC = 0xF7E58D4F05049CB7, 0xDD5E40F096B4A13F
"""What a list of parameters, and each array in it, begins with (TVM's ``param_dict.h``)."""
KINDS = {"i": 0, "u": 1, "f": 2, "b": 1}
"""DLPack's codes of numpy's kinds of types; TVM 0.17 has booleans as integers of one bit."""
CPU = (1, 0)


def written(program: Program, layout: Layout) -> Files:
    """Return ``<name>.tar``: metadata, C sources and headers, parameters.

    ``codegen/host/include/tvmgen_<name>.h`` has microTVM's interface.
    """
    inside: Files = {
        "metadata.json": (json.dumps(_about(program, layout), indent=2) + "\n").encode(),
        f"codegen/host/include/tvmgen_{program.name}.h": _tvmgen(program).encode(),
        f"parameters/{program.name}.params": params({c.name: c.array for c in program.constants}),
    }
    for name, data in network(program, layout).items():
        folder = {"h": "include", "c": "src"}.get(name.rpartition(".")[2], "lib")
        inside[f"codegen/host/{folder}/{name}"] = data
    return {f"{program.name}.tar": _tar(inside)}


def params(arrays: Mapping[str, Array]) -> bytes:
    """Return arrays by name as ``tvm.runtime.load_param_dict`` reads them."""
    out = [struct.pack("<QQQ", LIST_MAGIC, 0, len(arrays))]
    for name in arrays:
        out.append(struct.pack("<Q", len(name.encode())) + name.encode())
    out.append(struct.pack("<Q", len(arrays)))
    for array in arrays.values():
        bits = 1 if array.dtype.kind == "b" else array.dtype.itemsize * 8
        kind = struct.pack("<BBH", KINDS[array.dtype.kind], bits, 1)
        shape = struct.pack(f"<{array.ndim}q", *array.shape)
        head = struct.pack("<QQiii", ARRAY_MAGIC, 0, *CPU, array.ndim)
        out.append(head + kind + shape + struct.pack("<q", array.nbytes) + array.tobytes())
    return b"".join(out)


def _about(program: Program, layout: Layout) -> dict[str, Any]:
    arena = sum(program.arena_bytes.values())
    sizes = [program.tensors[t].size_bytes for t in (*program.given, *program.outputs)]
    main = {
        "device": CPU[0],
        "workspace_size_bytes": arena,
        "constants_size_bytes": program.constant_bytes,
        "io_size_bytes": sum(sizes),
        "inputs": _tensors(program, program.given),
        "outputs": _tensors(program, program.outputs),
    }
    kernels = [
        {
            "function_name": symbol(program, k.name),
            "workspace": [{"device": CPU[0], "workspace_size_bytes": 0}],
        }
        for k in program.kernels
    ]
    module = {
        "model_name": program.name,
        "target": [f"c -keys=arm_cpu,cpu -mcpu={layout.board.core.name}"],
        "memory": {"functions": {"main": [main], "operator_functions": kernels}},
        "executors": ["aot"],
        "style": "full-model",
        "serenity": metadata(program, layout),
    }
    return {"version": VERSION, "modules": {program.name: module}}


def _tensors(program: Program, tensors: Sequence[int]) -> dict[str, dict[str, Any]]:
    known = [program.tensors[t] for t in tensors]
    return {t.name: {"size": t.size_bytes, "dtype": t.dtype} for t in known}


def _tvmgen(program: Program) -> str:
    name = f"tvmgen_{program.name}"
    structures = []
    for role, tensors in (("inputs", program.given), ("outputs", program.outputs)):
        fields = "\n".join(f"    void *{program.tensors[t].name};" for t in tensors)
        structures.append(f"struct {name}_{role} {{\n{fields}\n}};\n")
    guard = f"{name.upper()}_H"
    body = _runs(program) if program.fed is None else _feeds(program)
    return join(
        [
            banner(program, "the interface that microTVM generated")
            + f"#ifndef {guard}\n#define {guard}\n\n#include <stddef.h>\n#include <string.h>\n\n"
            f'#include "{file(program, "model.h")}"\n\n'
            f"#define {name.upper()}_WORKSPACE_SIZE {sum(program.arena_bytes.values())}\n",
            *structures,
            f"static inline int32_t {name}_run(\n"
            f"    struct {name}_inputs *inputs, struct {name}_outputs *outputs)\n{{\n{body}}}\n",
            "#endif\n",
        ]
    )


def _runs(program: Program) -> str:
    copied = []
    for role, tensors, const in (
        ("inputs", program.inputs, "const "),
        ("outputs", program.outputs, ""),
    ):
        values = ", ".join(
            f"({const}{C_TYPES[program.tensors[t].dtype]} *){role}->{program.tensors[t].name}"
            for t in tensors
        )
        copied.append(f"    const {symbol(program, role)} own_{role} = {{{values}}};\n")
    return "".join(copied) + f"    return {symbol(program, 'run')}(&own_inputs, &own_outputs);\n"


def _feeds(program: Program) -> str:
    """The rows of the first input are fed one by one; a pointer that is missing is refused."""
    assert program.fed is not None
    fed = program.tensors[program.fed.tensor]
    roles = (("inputs", program.given), ("outputs", program.outputs))
    names = [f"{role}->{program.tensors[t].name} == NULL" for role, ts in roles for t in ts]
    lines = [f"    if ({' || '.join(names)}) {{", "        return -1;", "    }"]
    for t in program.inputs:
        known = program.tensors[t]
        inside = f"{symbol(program, f'input_{known.name}')}()"
        lines.append(f"    (void)memcpy({inside}, inputs->{known.name}, {known.size_bytes});")
    lines += [
        f"    {symbol(program, 'restart')}();",
        f"    for (uint32_t y = 0; y < {program.fed.rows}u; ++y) {{",
        f"        const uint8_t *const row = (const uint8_t *)inputs->{fed.name} + "
        f"y * {program.fed.row_bytes}u;",
        f"        if ({symbol(program, 'feed_row')}((const {C_TYPES[fed.dtype]} *)"
        "(const void *)row) < 0) {",
        "            return -1;",
        "        }",
        "    }",
    ]
    for t in program.outputs:
        known = program.tensors[t]
        inside = f"{symbol(program, f'output_{known.name}')}()"
        lines.append(f"    (void)memcpy(outputs->{known.name}, {inside}, {known.size_bytes});")
    return "\n".join([*lines, "    return 0;\n"])


def _tar(inside: Mapping[str, bytes]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(inside):
            entry = tarfile.TarInfo(f"./{name}")
            entry.size = len(inside[name])
            archive.addfile(entry, io.BytesIO(inside[name]))
    return data.getvalue()
