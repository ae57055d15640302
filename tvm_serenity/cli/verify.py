"""``serenity verify``: every tensor of a firmware project against TVM and LiteRT."""

from typing import Annotated, Any

import typer

from tvm_serenity.cli import app, show
from tvm_serenity.cli.run import Directory
from tvm_serenity.cli.schedule import Json
from tvm_serenity.errors import CheckError
from tvm_serenity.firmware.report import report
from tvm_serenity.firmware.verify import load


@app.command("verify")
def verify_command(
    directory: Directory,
    host: Annotated[bool, typer.Option("--host", help="Only on the host.")] = False,
    qemu: Annotated[bool, typer.Option("--qemu", help="Only in QEMU.")] = False,
    json: Json = False,
) -> None:
    """Run DIR on the host and in QEMU and compare every tensor, when it is written.

    The reference is stock TVM's: its kernels on memory of their own, recorded by serenity build;
    of a .tflite model LiteRT's outputs too. Integers must be identical; floats may be 2 units in
    the last place off. Exit status 2 when they differ. Instructions are emulated ones, not cycles.
    """
    project = load(directory)
    both = host == qemu
    found = report(project, on_host=host or both, on_qemu=qemu or both)
    if json:
        show.print_json(found)
    else:
        _print(project.metadata["name"], found)
    if not found["accepted"]:
        first = next(
            p["first_difference"]
            for p in (found["host"], found["qemu"])
            if p is not None and not p["accepted"]
        )
        raise CheckError(f"{directory}: first wrong tensor: {first or 'an output'}")


def _print(name: str, found: dict[str, Any]) -> None:
    rows = {}
    for where in ("host", "qemu"):
        part = found[where]
        if part is not None:
            same = "bit-identical" if part["identical"] else _apart(part)
            lite = part["litert_max_abs_error"]
            litert = "" if lite is None else f"; output to LiteRT: {lite:g} apart"
            rows[where] = f"{part['tensors']} tensors, each when written: {same}{litert}"
    ram, flash = found["ram"], found["flash"]
    rows["RAM"] = ", ".join(
        f"{k.removesuffix('_bytes')} {show.bytes_text(v)}" for k, v in ram.items()
    )
    rows["flash"] = ", ".join(
        f"{k.removesuffix('_bytes')} {show.bytes_text(v)}" for k, v in flash.items()
    )
    if found["instructions"] is not None:
        rows["instructions"] = f"{found['instructions']:,} emulated (not cycles)"
    show.facts(f"{name} on {found['board']}", rows)


def _apart(part: dict[str, Any]) -> str:
    if part["accepted"]:
        return f"at most {part['max_ulp']} units in the last place apart"
    return f"DIFFERENT from {part['first_difference']!r} on, {part['max_abs_error']:g} apart"
