"""``serenity verify``: every tensor of a firmware project against TVM and LiteRT."""

from typing import Any

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.options import Directory
from tvm_serenity.commands.verify import VerifyOptions, verify
from tvm_serenity.options.output import Shown


@command("verify")
def verify_command(directory: Directory, options: VerifyOptions, shown: Shown) -> None:
    """Run DIR on the host and in QEMU and compare every tensor, when it is written.

    The reference is stock TVM's: its kernels on memory of their own, recorded by serenity build;
    of a model file its own runtime's outputs, too (LiteRT, onnxruntime). Integers must be
    identical to both; floats may be 2 units in the last place from TVM's (8 where LLVM compiled
    the kernels) or, where kernels read each other's rounded results, 1e-4 of the tensor's largest
    number, and as much of the output's from the runtime's. Then QEMU runs further inputs, whose
    outputs must be those that build compared: 90 find an error of one unit in 5 % of all inputs
    with 99 % probability. Exit status 1 when they differ, 2 when
    DIR is no project. Instructions are emulated ones, not cycles.
    """
    found = verify(directory, options, show.progress)
    if shown.json:
        show.print_json(found.json())
    else:
        _print(found.name, found.figures)
    found.accept()


def _print(name: str, found: dict[str, Any]) -> None:
    rows = {}
    for where in ("host", "qemu"):
        part = found[where]
        if part is not None:
            same = "bit-identical" if part["identical"] else _apart(part)
            said = f"{part['tensors']} tensors, each when written: {same}{_against_runtime(part)}"
            rows[where] = said + _on_more(part)
    if found["litert_absent"]:
        rows["no reference runtime"] = found["litert_absent"]
    elif found["litert_tensors"]:
        rows["LiteRT"] = f"{found['litert_tensors']} of these tensors are its own, bit for bit"
    if found["unknown_tensors"]:
        rows["not compared"] = f"{found['unknown_tensors']} tensors that your functions decide"
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


def _against_runtime(part: dict[str, Any]) -> str:
    apart = part["litert_max_abs_error"]
    if apart is None:
        return ""
    said = "output identical to" if apart == 0 else f"output {apart:g} apart from"
    return f"; {said} the model's runtime" + (": WRONG" if part["litert_difference"] else "")


def _on_more(part: dict[str, Any]) -> str:
    if part["input_difference"] is not None:
        return f"; WRONG {part['input_difference']}"
    return f"; outputs right on {part['inputs']} inputs" if part["inputs"] > 1 else ""


def _apart(part: dict[str, Any]) -> str:
    if part["accepted"]:
        return f"at most {part['max_ulp']} units in the last place apart"
    return f"DIFFERENT from {part['first_difference']!r} on, {part['max_abs_error']:g} apart"
