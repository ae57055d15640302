"""Conversion of a Model Library Format archive to a firmware project for a board.

The project is that of a program with one kernel, the archive's entry point. Interface, harness,
start-up code, linker script and build files are those of ``serenity build``. The archive's C is
included unchanged, without warnings; a few definitions replace its two runtime headers.
"""

import json
import re
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from tvm_serenity.errors import InputError
from tvm_serenity.firmware.c_names import C_TYPES
from tvm_serenity.firmware.emit.c import file, join, prototype
from tvm_serenity.firmware.emit.project import Files, Layout, project
from tvm_serenity.firmware.place.memory_map import rooms
from tvm_serenity.firmware.program import Bands, Data, Kernel, Param, Program, Step, Tensor

ALIGNMENT = 16
HEADERS = ("c_runtime_api.h", "c_backend_api.h")
KERNEL = "network"
QUIET = "#pragma GCC system_header\n"


def library_project(archive: Path, layout: Layout) -> Files:
    """Return the files of a project that runs an exported library on a board.

    ``metadata.json`` holds the archive's metadata under ``model_library``. Raises
    :class:`InputError` unless the archive is generated C with one entry point.
    """
    members = _read(archive)
    about = json.loads(members.get("metadata.json", b"{}"))
    if len(about.get("modules", {})) != 1:
        raise InputError(f"{archive}: not a Model Library Format archive of one module")
    ((name, module),) = about["modules"].items()
    header = members.get(f"codegen/host/include/tvmgen_{name}.h", b"").decode()
    code = [data for path, data in sorted(members.items()) if path.startswith("codegen/host/src/")]
    if not header or not code:
        raise InputError(f'{archive}: holds no C with the interface "c"')
    main = module["memory"]["functions"]["main"][0]
    program = _program(name, header, main, rooms(layout.board, layout.stack_bytes)[0].region.name)
    metadata = {**(layout.metadata or {}), "model_library": about}
    files = project(program, replace(layout, metadata=metadata))
    files[f"tvmgen_{name}.h"] = header.encode()
    files["generated_interface.h"] = _quiet(code[:1])
    files["generated_kernels.h"] = _quiet(code[1:])
    weights = f'#include "{file(program, "weights.h")}"\n\n#include "generated_interface.h"\n'
    files[file(program, "weights.c")] = weights.encode()
    files[file(program, "kernels.c")] = _kernel(program, name).encode()
    for header in HEADERS:
        source = resources.files("tvm_serenity.relay") / "include" / header
        files[f"tvm/runtime/{header}"] = QUIET.encode() + source.read_bytes()
    return files


def _quiet(code: Sequence[bytes]) -> bytes:
    """Return generated C for inclusion, with its header in the same directory."""
    text = re.sub(rb"include <(tvmgen_\w+\.h)>", rb'include "\1"', b"\n".join(code))
    return QUIET.encode() + text


def _read(archive: Path) -> dict[str, bytes]:
    try:
        with tarfile.open(archive) as tar:
            found = ((m.name.removeprefix("./"), tar.extractfile(m)) for m in tar if m.isfile())
            return {name: data.read() for name, data in found if data is not None}
    except (OSError, tarfile.TarError) as error:
        raise InputError(f"{archive}: cannot be read: {error}") from None


def _program(name: str, header: str, main: dict[str, Any], region: str) -> Program:
    """Return the program whose only kernel is the entry point.

    Inputs and outputs are consecutive.
    """
    tensors: list[Tensor] = []
    groups = []
    for role in ("inputs", "outputs"):
        known = {re.sub(r"\W", "_", key): about for key, about in main[role].items()}
        start = len(tensors)
        for field in _fields(header, f"tvmgen_{name}_{role}"):
            dtype = known[field]["dtype"]
            if dtype not in C_TYPES:
                raise InputError(f"tensor {field!r}: element type {dtype} is not supported")
            width = Tensor(field, (1,), dtype).size_bytes
            tensors.append(Tensor(field, (known[field]["size"] // width,), dtype))
        groups.append(tuple(range(start, len(tensors))))
    inputs, outputs = groups
    bands, end = [], 0
    for tensor in tensors:
        bands.append(Bands.unsplit(region, end))
        end += -(-tensor.size_bytes // ALIGNMENT) * ALIGNMENT
    params = tuple(Param(t.name, t.dtype, i in inputs) for i, t in enumerate(tensors))
    step = Step((KERNEL,), tuple(map(Data, range(len(tensors)))), outputs)
    return Program(
        name,
        (Kernel(KERNEL, params, "", ()),),
        (),
        tuple(tensors),
        tuple(bands),
        (step,),
        inputs,
        outputs,
        {region: end},
        ALIGNMENT,
    )


def _fields(header: str, struct: str) -> list[str]:
    found = re.search(rf"struct {struct} \{{(.*?)\}};", header, re.DOTALL)
    if found is None:
        raise InputError(f"the header has no struct {struct}")
    return re.findall(r"void\* (\w+);", found[1])


def _kernel(program: Program, name: str) -> str:
    """Return ``kernels.c``: the generated C, and the call of its entry point."""

    def fill(role: str, tensors: tuple[int, ...]) -> str:
        names = (f"(void *)(uintptr_t){program.tensors[t].name}" for t in tensors)
        return f"    struct tvmgen_{name}_{role} {role} = {{{', '.join(names)}}};"

    return join(
        [
            f'#include "{file(program, "kernels.h")}"\n\n#include <stdint.h>\n\n'
            '#include "generated_kernels.h"\n'
            f'#include "tvmgen_{name}.h"\n',
            f"{prototype(program, program.kernels[0])}\n{{\n"
            f"{fill('inputs', program.inputs)}\n{fill('outputs', program.outputs)}\n"
            f"    (void)tvmgen_{name}_run(&inputs, &outputs);\n}}\n",
        ]
    )
