"""``serenity verify``: compare each tensor of a firmware project with TVM and LiteRT."""

from typing import Any

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.options import Directory
from tvm_serenity.commands.verify import VerifyOptions, verify
from tvm_serenity.options.output import Shown


@command("verify")
def verify_command(directory: Directory, options: VerifyOptions, shown: Shown) -> None:
    """Run DIR on the host and in QEMU, and compare each tensor as soon as it is written.

    serenity build recorded the reference: stock TVM's kernels with separate memory for each tensor
    and, for a model file, the outputs of its reference runtime (LiteRT, onnxruntime). Integers must
    be identical to both. Floats may differ from TVM's by 2 units in the last place (8 if LLVM
    compiled the kernels) or, if kernels read rounded results of other kernels, by 1e-4 of the
    largest value of the tensor; the outputs may differ from the reference runtime's by as much.

    Then QEMU runs further inputs, whose outputs must equal those that build compared: 90 inputs
    find an error of one unit in 5 % of all inputs with a probability of 99 %. Exit status 1 if an
    output differs, 2 if DIR is not a project. QEMU counts emulated instructions, not cycles.
    """
    verified = verify(directory, options, show.progress)
    if shown.json:
        show.print_json(verified.json())
    else:
        _print(verified.name, verified.figures)
    verified.accept()


def _print(name: str, figures: dict[str, Any]) -> None:
    rows = {}
    for where in ("host", "qemu"):
        part = figures[where]
        if part is not None:
            same = "bit-identical" if part["identical"] else _difference(part)
            text = f"{part['tensors']} tensors, each as soon as written: {same}"
            rows[where] = text + _transferred(part) + _against_runtime(part) + _on_more(part)
    if figures["litert_absent"]:
        rows["no reference runtime"] = figures["litert_absent"]
    elif figures["litert_tensors"]:
        rows["LiteRT"] = f"{figures['litert_tensors']} of these tensors are bit-identical to its"
    if figures["unknown_tensors"]:
        rows["not compared"] = f"{figures['unknown_tensors']} tensors that depend on your functions"
    ram, flash = figures["ram"], figures["flash"]
    rows["RAM"] = ", ".join(
        f"{k.removesuffix('_bytes')} {show.bytes_text(v)}" for k, v in ram.items()
    )
    rows["flash"] = ", ".join(
        f"{k.removesuffix('_bytes')} {show.bytes_text(v)}" for k, v in flash.items()
    )
    if figures["instructions"] is not None:
        rows["instructions"] = f"{figures['instructions']:,} emulated (not cycles)"
    show.facts(f"{name} on {figures['board']}", rows)


def _transferred(part: dict[str, Any]) -> str:
    if part["transferred_bytes"] is None:
        return ""
    wrong = part["transfer_difference"]
    text = f"{part['transferred_bytes']:,} bytes between its memories, as planned"
    return f"; WRONG: {wrong}" if wrong else f"; {text}"


def _against_runtime(part: dict[str, Any]) -> str:
    error = part["litert_max_abs_error"]
    if error is None:
        return ""
    text = "output identical to" if error == 0 else f"output differs by {error:g} from"
    return f"; {text} the reference runtime's" + (": WRONG" if part["litert_difference"] else "")


def _on_more(part: dict[str, Any]) -> str:
    if part["input_difference"] is not None:
        return f"; WRONG {part['input_difference']}"
    return f"; outputs correct on {part['inputs']} inputs" if part["inputs"] > 1 else ""


def _difference(part: dict[str, Any]) -> str:
    if part["accepted"]:
        return f"differs by at most {part['max_ulp']} units in the last place"
    return f"WRONG from {part['first_difference']!r} on, by up to {part['max_abs_error']:g}"
