"""``serenity compile``: order, plan, build, run, and compare with stock TVM."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tvm_serenity.cli import show
from tvm_serenity.cli.channels import said_of_channels
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.options import Model
from tvm_serenity.commands.compile import compile
from tvm_serenity.commands.compile_options import CompileOptions
from tvm_serenity.options.output import Shown

if TYPE_CHECKING:
    from tvm_serenity.runtime.build import CompileReport


@command("compile")
def compile_command(model: Model, options: CompileOptions, shown: Shown) -> None:
    """Schedule MODEL, plan one arena, compile it with TVM, run it, and check what it computes.

    Every distinct kernel is compiled once, in an earlier run or in this one, and compared with
    TVM's own on fresh inputs; the network with TVM's own kernels and with the model's runtime
    (LiteRT, onnxruntime) where it is installed: a wrong result ends with status 1, and nothing is
    written (docs/validation.md). The bytes are those the Relax VM allocates while it runs;
    parameters and results belong to the caller and are counted apart. Stock TVM's memory is what
    its planner says; with --compare it is compiled and run as well. A quantised model runs on
    integer kernels, while stock TVM runs it in float between dequantise and quantise. With -o, DIR
    receives what tvm_serenity.runtime.library.load loads (lib.so, bytecode.json, constants.bin),
    graph.txt and report.json.
    """
    show.warn_without_core()
    found = compile(model, options, show.progress)
    if shown.json:
        show.print_json(found.json())
    else:
        _print(model, found.report, found.figures)


def _print(model: str, found: "CompileReport", result: Mapping[str, Any]) -> None:
    stock, given, ours = result["stock"], result["given"], result["schedule"]
    outputs = result["outputs"]
    share = ours["arena_bytes"] / max(stock["total_bytes"], 1)
    to_stock = {}
    if outputs["identical_to_stock"] is not None:
        apart = f"largest difference {outputs['max_abs_error_to_stock']:.3g}"
        said = "bit-identical" if outputs["identical_to_stock"] else apart
        to_stock = {"stock's outputs": f"{said}{_float_between(result)}"}
    show.facts(
        f"{model}: {result['ops']} kernels on the Relax VM, {result['target']}",
        {
            "stock TVM": f"{stock['storage_bytes']:,} bytes in storages + "
            f"{stock['workspace_bytes']:,} in its largest kernel = {stock['total_bytes']:,}",
            "given order": f"{given['arena_bytes']:,} bytes in one arena "
            f"(peak {given['peak_bytes']:,})",
            "best order": f"{ours['arena_bytes']:,} bytes in one arena "
            f"(peak {ours['peak_bytes']:,})"
            + (f", {share:.0%} of stock TVM" if stock["total_bytes"] else ""),
            "proof": f"{ours['outcome']}: no order needs less than "
            f"{ours['lower_bound_bytes']:,} bytes ({ours['states']:,} states, "
            f"{ours['seconds']:.3f} s)",
            "outputs": _verdict(found, result),
            **to_stock,
            **_quantised_facts(result),
            **_tuned_facts(result["tuned"]),
            "order": "executed as scheduled, seen by the VM's own hook",
        },
    )


def _verdict(found: "CompileReport", result: Mapping[str, Any]) -> str:
    """What was checked."""
    checks = result["checks"]
    lines = ["bit-identical to the given order, in poisoned memory"]
    if checks["skipped"]:
        return f"{lines[0]}; kernels NOT validated, no reference runtime asked (--no-check)"
    if checks["kernels"]:
        lines.append(
            f"{checks['kernels']} distinct kernels equal TVM's own on {checks['input_sets']} "
            f"sets of inputs{_known(checks['known_kernels'])}"
        )
    if checks["before"]:
        lines.append("the network computes the same as before it was changed")
    if found.verdict is None:
        lines.append("no runtime of its own to compare with")
    else:
        lines.append(found.verdict.text())
    return "; ".join(lines)


def _known(count: int) -> str:
    return f" ({count} of them compared in an earlier run)" if count else ""


def _float_between(result: Mapping[str, Any]) -> str:
    if "quantized" not in result:
        return ""
    return " (in float between dequantise and quantise: no measure of correctness)"


def _tuned_facts(found: Mapping[str, Any]) -> dict[str, str]:
    taken = [k for k in found["kernels"] if k["taken"]]
    left = sorted({k["kernel"] for k in found["kernels"]} - {k["kernel"] for k in taken})
    if not found["kernels"]:
        return {}
    lines = [f"{k['kernel']} ({k['form']})" for k in taken]
    said = f"{found['source']}, for {found['target_class']}: {', '.join(lines) or 'none'}"
    room = f"; no room for the scratch of {', '.join(left)}" if left else ""
    return {"faster kernels": said + room}


def _quantised_facts(result: Mapping[str, Any]) -> dict[str, str]:
    found = result.get("quantized")
    if found is None:
        return {}
    kept = found["kept_float"]
    lines = "".join(f"; {line}" for line in kept)
    said = f"integer kernels ({found['rounding']} rounding), {found['weight_bytes']:,} bytes"
    rows = {"quantised": f"{said} of weights; {len(kept)} operators stay float{lines}"}
    fewer = said_of_channels(found["channels"])
    return {**rows, "channels": fewer} if fewer else rows
