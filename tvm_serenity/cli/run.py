"""``serenity run``: run a firmware project on the host or under QEMU."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tvm_serenity.cli import app, latency_line, show
from tvm_serenity.cli.options import Json
from tvm_serenity.errors import InputError
from tvm_serenity.files import write_bytes
from tvm_serenity.firmware.result import Project, load
from tvm_serenity.firmware.verify import run_host, run_qemu

Directory = Annotated[str, typer.Argument(metavar="DIR", help="What serenity build wrote.")]


@app.command("run")
def run_command(
    directory: Directory,
    host: Annotated[bool, typer.Option("--host", help="With the host's compiler.")] = False,
    qemu: Annotated[bool, typer.Option("--qemu", help="On the board in QEMU.")] = False,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="FILE.npy", help="An input; repeat for several."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE.npy", help="Save output 0.")
    ] = None,
    json: Json = False,
) -> None:
    """Run DIR once and print its outputs, by default in QEMU if the board has a machine there.

    Without --input the inputs of the reference are used. Instructions are those QEMU emulated for
    one run of the network: not cycles. A window that moves (serenity build --sliding) runs over a
    stream of rows: the outputs are those of its last window, the instructions those of a step.
    """
    project = load(directory)
    if host and qemu:
        raise InputError("--host and --qemu: choose one")
    on_host = host or (not qemu and project.metadata["qemu"] is None)
    data = _inputs(project, inputs)
    with show.progress("running"):
        found = (run_host if on_host else run_qemu)(project, data, traced=False)
    arrays = [
        np.frombuffer(raw, t["dtype"]).reshape(project.windows, *t["shape"])[-1]
        for raw, t in zip(found.outputs, project.outputs, strict=True)
    ]
    if output is not None:
        _save(output, arrays[0])
    where = "host" if on_host else f"{project.metadata['board']} (QEMU)"
    result: dict[str, Any] = {
        "where": where,
        "instructions": found.instructions,
        "stack_bytes": found.stack_bytes or None,
        "outputs": {
            t["name"]: a.reshape(-1).tolist() for t, a in zip(project.outputs, arrays, strict=True)
        },
    }
    if json:
        show.print_json(result)
        return
    rows = {
        t["name"]: f"{t['dtype']} {tuple(t['shape'])}: {_short(a)}"
        for t, a in zip(project.outputs, arrays, strict=True)
    }
    if found.instructions is not None:
        rows["instructions"] = f"{found.instructions:,} emulated (not cycles)"
        rows["stack"] = f"{found.stack_bytes:,} bytes"
    rows |= latency_line.rows(latency_line.estimated(project))
    show.facts(f"{project.metadata['name']} on {where}", rows)


def _short(array: np.ndarray[Any, Any]) -> str:
    values = array.reshape(-1)
    text = ", ".join(f"{v:g}" for v in values[:12].tolist())
    return text + (f", ... ({values.size})" if values.size > 12 else "")


def _inputs(project: Project, files: list[str] | None) -> list[Any]:
    if not files:
        return project.reference_inputs()
    if len(files) != len(project.inputs):
        raise InputError(f"{len(files)} --input, the network has {len(project.inputs)} inputs")
    found = []
    for file, tensor in zip(files, project.inputs, strict=True):
        try:
            array = np.load(file, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{file}: cannot be read: {reason}") from None
        size = int(np.prod(tensor["shape"], dtype=np.int64))
        moving = project.metadata.get("moving")
        if moving is not None:  # a stream of rows
            size = moving["rows"] * (size // moving["window"])
        if not isinstance(array, np.ndarray) or str(array.dtype) != tensor["dtype"]:
            raise InputError(f"{file}: input {tensor['name']!r} is of type {tensor['dtype']}")
        if array.size != size:
            raise InputError(
                f"{file}: {array.size} elements; input {tensor['name']!r} has {size}, "
                + (f"{moving['rows']} rows" if moving else f"shape {tuple(tensor['shape'])}")
            )
        found.append(array)
    return found


def _save(path: str, array: np.ndarray[Any, Any]) -> None:
    import io

    data = io.BytesIO()
    np.save(data, array)
    write_bytes(Path(path), data.getvalue())
