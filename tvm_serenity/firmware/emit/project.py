"""The files of a project; they are written all or none."""

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_serenity.boards import Board
from tvm_serenity.errors import CheckError, InputError
from tvm_serenity.firmware.emit import (
    buildfiles,
    header,
    linker,
    model,
    opaque,
    programs,
    sources,
    transfers,
)
from tvm_serenity.firmware.emit.c import PORT_HEADER, PORT_SOURCE, file, has_port
from tvm_serenity.firmware.emit.calls import about
from tvm_serenity.firmware.emit.origin import about_origin, with_licence
from tvm_serenity.firmware.program import Program
from tvm_serenity.options.memory import STACK_BYTES

Files = dict[str, bytes]
METADATA = "metadata.json"


@dataclass(frozen=True)
class Layout:
    """The board and memory of a project; ``metadata`` is added to ``metadata.json``.

    ``kernel_set``: the folder of the kernel set that runs a blob, None for one of its own;
    ``extend``: add the kernels that this set lacks.
    """

    board: Board
    stack_bytes: int = STACK_BYTES
    external_arena: bool = False
    metadata: Mapping[str, Any] | None = None
    kernel_set: str | Path | None = None
    extend: bool = False


def project(program: Program, layout: Layout) -> Files:
    """Return the files of a project by name."""
    board, external = layout.board, layout.external_arena
    text = {
        "main.c": programs.example(program, external, timed=not board.compiler),
        "harness.c": programs.harness(program, external),
        "Makefile": buildfiles.makefile(program, board),
        "CMakeLists.txt": buildfiles.cmake_lists(program, board),
        METADATA: metadata_json(program, layout),
    }
    for name in ("port.h", "port_files.h", "port_host.c"):
        text[name] = sources.support(name)
    if board.compiler:
        text |= _board_files(layout, program)
    files = with_licence({n: t.encode() for n, t in text.items()})
    legal = about_origin(program.name, layout.metadata or {})
    return {**network(program, layout), **files, **legal}


def _board_files(layout: Layout, program: Program) -> dict[str, str]:
    """Return the files that start, link and run the programs on the board."""
    board = layout.board
    return {
        "link.ld": linker.linker_script(program, board, layout.stack_bytes),
        "toolchain.cmake": buildfiles.toolchain_file(board),
        **sources.board_port(board.architecture),
    }


def network(program: Program, layout: Layout) -> Files:
    """Return the files of the network, without those of the board, harness and build."""
    external = layout.external_arena
    text = {
        "model.h": header.header(program, external),
        "model.c": model.source(program, external),
        "kernels.h": sources.kernels_header(program),
        "kernels.c": sources.kernels_source(program),
        "weights.h": sources.weights_header(program),
        "weights.c": sources.weights_source(program),
        **({opaque.HEADER: opaque.opaque_header(program)} if program.users else {}),
    }
    if has_port(program):
        text[PORT_HEADER] = transfers.port_header(program)
        text[PORT_SOURCE] = transfers.port_source(program)
    files = with_licence({file(program, n): t.encode() for n, t in text.items()})
    return {**files, **dict(program.objects)}


def metadata_json(program: Program, layout: Layout) -> str:
    """Return ``metadata.json``."""
    return json.dumps(metadata(program, layout), indent=2) + "\n"


def metadata(program: Program, layout: Layout) -> dict[str, Any]:
    """Return the content of ``metadata.json``: memory map, tensors and steps, for tools."""
    places = [program.place(t) for t in range(len(program.tensors))]
    return {
        "name": program.name,
        "board": layout.board.name,
        "architecture": layout.board.architecture,
        "qemu": layout.board.qemu,
        "stack_bytes": layout.stack_bytes,
        "external_arena": layout.external_arena,
        "objects": list(program.objects),
        "arena_bytes": dict(program.arena_bytes),
        "constant_bytes": program.constant_bytes,
        "transferred_bytes": program.transferred_bytes,
        "inputs": list(program.given),
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
            for t, p in zip(program.tensors, places, strict=True)
        ],
        **about(program),
        "moving": _moving(program),
        **(layout.metadata or {}),
    }


def _moving(program: Program) -> dict[str, int] | None:
    """Return the entries about incremental inference, with the windows of a verification run."""
    steps = program.steps_of_stream
    if steps is None:
        return None
    return {**steps, "windows": program.windows, "rows": program.rows_fed}


def write_files(files: Mapping[str, bytes], directory: Path) -> None:
    """Write ``files`` into ``directory``, which exists."""
    for name, data in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def write_project(files: Mapping[str, bytes], directory: str | Path, force: bool = False) -> None:
    """Write ``files`` to ``directory``, all of them or none (:func:`replaced`)."""
    with replaced(Path(directory), force) as inside:
        write_files(files, inside)


@contextmanager
def replaced(target: Path, force: bool) -> Iterator[Path]:
    """Yield an empty folder that replaces ``target`` if the block raises no error.

    After an error ``target`` is unchanged, and a :class:`CheckError` names ``target`` instead of
    the folder. Raises :class:`InputError` if ``target`` exists and is not empty, unless ``force``.
    """
    check_target(target, force)
    old = target.parent / f".{target.name}.old"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as made:
            inside = Path(made) / "project"
            inside.mkdir()
            try:
                yield inside
            except CheckError as error:
                if str(inside) not in str(error):
                    raise
                raise type(error)(str(error).replace(str(inside), str(target))) from None
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


@contextmanager
def output_folder(output: str | Path | None, force: bool) -> Iterator[Path]:
    """Yield an empty folder that becomes ``output``, if that is given and there is no error."""
    if output is not None:
        with replaced(Path(output), force) as folder:
            yield folder
        return
    with tempfile.TemporaryDirectory(prefix="serenity.") as made:
        yield Path(made)


def check_target(target: Path, force: bool) -> None:
    """Raise :class:`InputError` if a project may not be written to ``target``."""
    if target.exists() and not target.is_dir():
        raise InputError(f"{target}: exists and is not a directory; name a new directory")
    if target.exists() and any(target.iterdir()) and not force:
        raise InputError(f"{target}: is not empty; name a new directory or pass --force")
