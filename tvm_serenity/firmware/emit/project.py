"""The files of a project, and writing them: all or none."""

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_serenity.boards import Board
from tvm_serenity.errors import CheckError, InputError
from tvm_serenity.firmware.emit import buildfiles, linker, model, sources
from tvm_serenity.firmware.memory import STACK_BYTES
from tvm_serenity.firmware.program import Program

Files = dict[str, bytes]


@dataclass(frozen=True)
class Layout:
    """What a project is made for; ``metadata`` is added to ``metadata.json``."""

    board: Board
    stack_bytes: int = STACK_BYTES
    external_arena: bool = False
    metadata: Mapping[str, Any] | None = None


def project(program: Program, layout: Layout) -> Files:
    """Return the files of a project by name."""
    board, external = layout.board, layout.external_arena
    text = {
        "model.h": model.header(program, external),
        "model.c": model.source(program, external),
        "kernels.h": sources.kernels_header(program),
        "kernels.c": sources.kernels_source(program),
        "weights.h": sources.weights_header(program),
        "weights.c": sources.weights_source(program),
        "main.c": sources.example(program, external),
        "harness.c": sources.harness(program, external),
        "link.ld": linker.linker_script(program, board, layout.stack_bytes),
        "Makefile": buildfiles.makefile(program, board),
        "CMakeLists.txt": buildfiles.cmake_lists(program, board),
        "toolchain.cmake": buildfiles.toolchain_file(board),
    }
    for name in ("startup.c", "port.h", "port_board.c", "port_host.c"):
        text[name] = sources.support(name)
    files = {n: t.encode() for n, t in text.items()}
    return {**files, "metadata.json": metadata_json(program, layout), **dict(program.objects)}


def metadata_json(program: Program, layout: Layout) -> bytes:
    """Return ``metadata.json``."""
    return (json.dumps(metadata(program, layout), indent=2) + "\n").encode()


def metadata(program: Program, layout: Layout) -> dict[str, Any]:
    """Return what tools read: memory map, tensors, steps."""
    return {
        "name": program.name,
        "board": layout.board.name,
        "qemu": layout.board.qemu,
        "stack_bytes": layout.stack_bytes,
        "external_arena": layout.external_arena,
        "objects": list(program.objects),
        "arena_bytes": dict(program.arena_bytes),
        "constant_bytes": program.constant_bytes,
        "inputs": list(program.inputs),
        "outputs": list(program.outputs),
        "tensors": [
            {
                "name": t.name,
                "shape": list(t.shape),
                "dtype": t.dtype,
                "size_bytes": t.size_bytes,
                "region": p.region,
                "offset_bytes": p.offset_bytes,
                "scale": t.quantisation.scale if t.quantisation else None,
                "zero_point": t.quantisation.zero_point if t.quantisation else None,
            }
            for t, p in zip(program.tensors, program.places, strict=True)
        ],
        "steps": [{"kernel": s.kernel, "writes": list(s.writes)} for s in program.steps],
        **(layout.metadata or {}),
    }


def write_project(
    files: Mapping[str, bytes],
    directory: str | Path,
    force: bool = False,
    prepare: Callable[[Path], None] = lambda _directory: None,
) -> None:
    """Write ``files`` to ``directory``, all of them or none.

    ``prepare`` works on the project before it takes its place; what it raises leaves nothing.
    Raises :class:`InputError` where it exists and is not empty, unless ``force``: then what it
    holds is replaced.
    """
    target = Path(directory)
    check_target(target, force)
    old = target.parent / f".{target.name}.old"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as made:
            inside = Path(made) / "project"
            inside.mkdir()
            for name, data in files.items():
                path = inside / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            try:
                prepare(inside)
            except CheckError as error:
                raise CheckError(str(error).replace(str(inside), str(target))) from None
            if target.exists():
                target.rename(old)
            inside.rename(target)
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}") from error
    finally:
        if old.exists():
            if target.exists():
                shutil.rmtree(old)
            else:
                old.rename(target)


def check_target(target: Path, force: bool) -> None:
    """Raise :class:`InputError` where a project may not be written to ``target``."""
    if target.exists() and not target.is_dir():
        raise InputError(f"{target}: exists and is no directory")
    if target.exists() and any(target.iterdir()) and not force:
        raise InputError(f"{target}: is not empty; name a new directory or pass --force")
