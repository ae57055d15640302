"""``serenity compile``: compile a model with TVM in one arena, and compare it with stock TVM."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tvm_serenity.cli import show
from tvm_serenity.cli.channels import channels_text
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.options import Model
from tvm_serenity.commands.compile import compile
from tvm_serenity.commands.compile_options import CompileOptions
from tvm_serenity.options.output import Shown

if TYPE_CHECKING:
    from tvm_serenity.runtime.build import CompileReport


@command("compile")
def compile_command(model: Model, options: CompileOptions, shown: Shown) -> None:
    """Order MODEL, place it in one arena, compile it with TVM, run it and check its outputs.

    Translation validation compares each distinct kernel with TVM's own kernel on fresh inputs;
    kernels that an earlier run validated are not compared again. The outputs of the network are
    compared with TVM's own kernels and with the model's reference runtime (LiteRT, onnxruntime)
    if it is installed. If a result is wrong, nothing is written and the exit status is 1
    (docs/validation.md).

    The printed bytes are those that the Relax VM allocates during a run, without parameters and
    outputs, which belong to the caller. The memory of stock TVM is the plan of its own planner;
    --compare also compiles and runs stock TVM. A quantised model runs on integer kernels; stock
    TVM runs it in float between dequantise and quantise.

    With -o, DIR receives a library for tvm_serenity.runtime.library.load (lib.so, bytecode.json,
    constants.bin), graph.txt and report.json.
    """
    show.warn_without_core()
    compiled = compile(model, options, show.progress)
    if shown.json:
        show.print_json(compiled.json())
    else:
        _print(model, compiled.report, compiled.figures)


def _print(model: str, report: "CompileReport", figures: Mapping[str, Any]) -> None:
    stock, given, ours = figures["stock"], figures["given"], figures["schedule"]
    outputs = figures["outputs"]
    share = ours["arena_bytes"] / max(stock["total_bytes"], 1)
    to_stock = {}
    if outputs["identical_to_stock"] is not None:
        difference = f"largest difference {outputs['max_abs_error_to_stock']:.3g}"
        text = "bit-identical" if outputs["identical_to_stock"] else difference
        to_stock = {"beside stock TVM": f"{text}{_float_between(figures)}"}
    show.facts(
        f"{model}: {figures['ops']} kernels on the Relax VM, {figures['target']}",
        {
            "stock TVM": f"{stock['storage_bytes']:,} bytes of storage + "
            f"{stock['workspace_bytes']:,} of workspace in its largest kernel = "
            f"{stock['total_bytes']:,}",
            "given order": f"{given['arena_bytes']:,} bytes in one arena "
            f"(peak {given['peak_bytes']:,})",
            "best order": f"{ours['arena_bytes']:,} bytes in one arena "
            f"(peak {ours['peak_bytes']:,})"
            + (f", {share:.0%} of stock TVM" if stock["total_bytes"] else ""),
            "proof": f"{ours['outcome']}: no order needs less than "
            f"{ours['lower_bound_bytes']:,} bytes ({ours['states']:,} states, "
            f"{ours['seconds']:.3f} s)",
            "outputs": _verdict(report, figures),
            **to_stock,
            **_quantised_facts(figures),
            **_tuned_facts(figures["tuned"]),
            "order": "the VM's instrumentation hook saw it run as scheduled",
        },
    )


def _verdict(report: "CompileReport", figures: Mapping[str, Any]) -> str:
    """Return the checks that passed, as text."""
    checks = figures["checks"]
    lines = ["bit-identical to the given order, in poisoned memory"]
    if checks["skipped"]:
        return f"{lines[0]}; kernels and outputs NOT validated: --no-check"
    if checks["kernels"]:
        lines.append(
            f"{checks['kernels']} distinct kernels equal TVM's on {checks['input_sets']} "
            f"sets of inputs{_known(checks['known_kernels'])}"
        )
    if checks["before"]:
        lines.append("the transformed network computes what the original computes")
    if report.verdict is None:
        lines.append("no reference runtime to compare with")
    else:
        lines.append(report.verdict.text())
    return "; ".join(lines)


def _known(count: int) -> str:
    return f" ({count} of them validated in an earlier run)" if count else ""


def _float_between(result: Mapping[str, Any]) -> str:
    if "quantized" not in result:
        return ""
    return " (stock TVM computes in float between dequantise and quantise: not an error)"


def _tuned_facts(tuned: Mapping[str, Any]) -> dict[str, str]:
    selected = [one for one in tuned["kernels"] if one["taken"]]
    names = {one["kernel"] for one in selected}
    skipped = sorted({one["kernel"] for one in tuned["kernels"]} - names)
    if not tuned["kernels"]:
        return {}
    lines = [f"{one['kernel']} ({one['form']})" for one in selected]
    text = f"{tuned['source']}, for {tuned['target_class']}: {', '.join(lines) or 'none'}"
    room = f"; no memory for the scratch of {', '.join(skipped)}" if skipped else ""
    return {"faster kernels": text + room}


def _quantised_facts(result: Mapping[str, Any]) -> dict[str, str]:
    integers = result.get("quantized")
    if integers is None:
        return {}
    kept = integers["kept_float"]
    lines = "".join(f"; {line}" for line in kept)
    text = f"integer kernels ({integers['rounding']} rounding), {integers['weight_bytes']:,} bytes"
    rows = {"quantised": f"{text} of weights; {len(kept)} operators in float{lines}"}
    skipped = channels_text(integers["channels"])
    return {**rows, "channels": skipped} if skipped else rows
