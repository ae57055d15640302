"""A model as data: a blob, and the kernel set that runs it unless a given one does."""

from typing import Any

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.blob.check import compare
from tvm_serenity.firmware.blob.cost import instructions, project_bytes, set_bytes
from tvm_serenity.firmware.blob.image import blob, refusal
from tvm_serenity.firmware.blob.kernel_set import (
    SET_FILE,
    KernelSet,
    read_set,
    set_for,
    set_json,
    used_by,
)
from tvm_serenity.firmware.blob.source import set_files
from tvm_serenity.firmware.board import image as linked_image
from tvm_serenity.firmware.emit.project import Files, Layout
from tvm_serenity.firmware.formats.library import CONTRACT, completed
from tvm_serenity.firmware.program import Program
from tvm_serenity.firmware.result import Project


def written(program: Program, layout: Layout) -> Files:
    """Return ``NAME.blob``, and the C of its kernel set if that is new."""
    known = _set(program, layout)
    made: Files = {f"{program.name}.blob": blob(program, known)}
    if not _is_new(layout):
        return completed(program, layout, made, {})
    texts = set_files(known)
    kernels = f"{known.name}_kernels.c"
    texts[kernels] = CONTRACT + texts[kernels]
    about = {SET_FILE: set_json(known), "README.md": _readme(program, known)}
    return completed(program, layout, made, {**texts, **about})


def described(program: Program, layout: Layout, files: Files, project: Project) -> dict[str, Any]:
    """Return what a blob costs, after comparing its outputs with those of ``project``.

    ``compared_inputs`` is 0 if ``project`` has no outputs to compare with. Code is None without the
    board's compiler, instructions also if QEMU does not emulate the board. Raises
    :class:`WrongResultError` if an output differs.
    """
    known, image = _set(program, layout), files[f"{program.name}.blob"]
    can_link = linked_image.linkable(layout.board.architecture)
    compared = compare(image, used_by(known, program), project)
    ran = instructions(image, known, program, project, layout) if can_link else None
    earlier = [] if layout.kernel_set is None else read_set(layout.kernel_set).kernels
    return {
        "blob_bytes": len(image),
        "constant_bytes": program.constant_bytes,
        "kernels": len(used_by(known, program).kernels),
        "kernel_set": len(known.kernels),
        "new_kernels": [kernel.name for kernel in known.kernels[len(earlier) :]],
        "set_code_bytes": set_bytes(known, layout.board) if can_link else None,
        "project_code_bytes": project_bytes(program, layout) if can_link else None,
        "instructions": None if ran is None else ran.blob,
        "project_instructions": None if ran is None else ran.project,
        "compared_inputs": compared,
    }


def _is_new(layout: Layout) -> bool:
    """Return whether the kernel set is written: there is no earlier one, or it grows."""
    return layout.kernel_set is None or layout.extend


def check_taken(program: Program, layout: Layout) -> None:
    """Raise :class:`UnsupportedError` if a program cannot be a blob, or its kernel set lacks some.

    :class:`InputError` for a kernel set that is not for the board.
    """
    reason = refusal(program)
    if reason:
        raise UnsupportedError(f"{program.name}: --format blob does not take a model that {reason}")
    _set(program, layout)


def _set(program: Program, layout: Layout) -> KernelSet:
    return set_for(program, layout.board.core.name, layout.kernel_set, layout.extend)


def _readme(program: Program, known: KernelSet) -> str:
    name, upper = known.name, known.name.upper()
    return f"""# {name}

A kernel set for {known.core}: `{name}_kernels.c` and `{name}_blob.c` are compiled into the
firmware once, and run every blob that needs no other kernels. `{program.name}.blob` is one.

```c
#include "{name}_blob.h"

static uint8_t arena[{upper}_ARENA_BYTES] __attribute__((aligned({upper}_ARENA_ALIGNMENT)));
static {name}_model model;

int32_t begin(const void *blob, uint32_t room_bytes)
{{
    return {name}_load(&model, blob, room_bytes, arena, sizeof arena);
}}
```

`serenity build NEWER --format blob --kernels` with this folder writes a blob of another model, or
says which kernels are missing.
"""
