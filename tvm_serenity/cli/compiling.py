"""``serenity compile``: order, plan, build, run, and compare with stock TVM."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tvm_serenity.cli import app, show
from tvm_serenity.cli.models import part, source
from tvm_serenity.cli.options import Dims, Json, Model, Rewrite, Signature, Target, TimeLimit
from tvm_serenity.cli.quantized import (
    Channels,
    DynamicRange,
    Quantized,
    Rounding,
    opened_for,
    quantised_json,
    said_of_channels,
)
from tvm_serenity.deadline import spending
from tvm_serenity.errors import InputError
from tvm_serenity.memory import peak_bytes
from tvm_serenity.quantize.choices import FOLD, OFF
from tvm_serenity.schedule import Options, check_schedule

if TYPE_CHECKING:
    import tvm

    from tvm_serenity.relax.pipeline import Prepared
    from tvm_serenity.relax.rewrite import Rewriting
    from tvm_serenity.runtime.build import CompileReport
    from tvm_serenity.runtime.checks import Checks


@app.command("compile")
def compile_command(
    model: Model,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="DIR", help="Write the library and report here."),
    ] = None,
    target: Target = "native",
    time_limit: TimeLimit = None,
    rewrite: Rewrite = False,
    rows: Annotated[
        bool, typer.Option("--rows", help="Split operators into rows first (docs/rows.md).")
    ] = False,
    rules: Annotated[
        str, typer.Option("--rules", help="With --rewrite: all, paper, or names of rules.")
    ] = "all",
    quantized: Quantized = "auto",
    rounding: Rounding = "auto",
    dynamic_range: DynamicRange = "litert",
    channels: Channels = FOLD,
    tuned: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="Faster forms of kernels: FILE of serenity tune, shipped, or none."
        ),
    ] = "shipped",
    threads: Annotated[
        int,
        typer.Option(
            min=1,
            envvar="TVM_NUM_THREADS",
            help="Kernels of enough work are shared out among so many threads.",
        ),
    ] = 1,
    one_file: Annotated[
        bool, typer.Option("--one-file", help="With -o: lib.so for TVM alone, constants inside.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the random inputs.")] = 0,
    dim: Dims = None,
    signature: Signature = None,
    json: Json = False,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", metavar="FILE", help="Inputs to run on: .npz by name, or .npy in order."
        ),
    ] = None,
    check: Annotated[
        bool | None,
        typer.Option(
            "--check/--no-check",
            help="--check: the naive checkers of order and plan, too. --no-check: no validation.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Schedule MODEL, plan one arena, compile it with TVM, run it, and check what it computes.

    Every distinct kernel is compared with TVM's own on fresh inputs, the network with TVM's own
    kernels and with the model's runtime (LiteRT, onnxruntime) where it is installed: a wrong result
    ends with status 1, and nothing is written (docs/validation.md). The bytes are those the
    Relax VM allocates while it runs; parameters and results belong to the caller and are counted
    apart. A quantised model runs on integer kernels, while stock TVM runs it in float between
    dequantise and quantise. With -o, DIR receives what
    tvm_serenity.runtime.library.load loads (lib.so, bytecode.json, constants.bin), graph.txt and
    report.json.
    """
    opened = source(model, part(dim, signature))
    opened.check_operators(quantized != OFF)
    module = opened.module("off")
    from tvm_serenity.relax.pipeline import Steps, prepared_for_host
    from tvm_serenity.runtime.build import compile_and_compare
    from tvm_serenity.runtime.library import needs
    from tvm_serenity.tvm_targets import check_runs_here, named, target_of
    from tvm_serenity.validation.given import given_inputs

    if output is not None and Path(output).exists():
        raise InputError(f"{output}: exists already; name a new directory")
    if rows and rewrite:
        raise InputError("--rows and --rewrite: choose one")
    machine = target_of(target)
    needed = needs(machine)
    check_runs_here(f"--target {named(machine)}", *needed.values())
    given = given_inputs(inputs, module) if inputs else None
    show.warn_without_core()
    start, rounding_used = opened_for(opened, module, quantized, rounding, dynamic_range)
    os.environ["TVM_NUM_THREADS"] = str(threads)  # TVM's runtime reads it when it starts threads
    with spending(time_limit), show.progress(f"compiling {model}") as report:
        report.step("reading kernels")
        steps = Steps(
            quantized=quantized,
            rounding=rounding_used,
            channels=channels,
            rewrite=rules if rewrite else "",
            rows=rows,
            time_limit_s=time_limit,
            measured=tuned,
            threads=threads,
        )
        made = prepared_for_host(start, steps, machine)
        checks = _checks(opened.judged(), module, quantized, rounding, check, output)
        checks = _loosened(checks, start)
        if made.is_changed and checks.kernels:
            checks = _against(checks, made.integers, rewrite)
        found = compile_and_compare(
            module,
            made,
            Options(progress=report.search),
            inputs=given,
            seed=seed,
            checks=checks,
            notify=report.step,
        )
    if check:
        check_schedule(found.graph, found.schedule.order, found.schedule.peak_bytes)
    result = {
        **_json(model, named(machine), found, checks),
        "threads": threads,
        "needs": needed,
        **_steps_json(module, made),
    }
    if output is not None:
        _export(found, result, Path(output), one_file)
    if json:
        show.print_json(result)
    else:
        _print(model, found, result)


def _checks(
    model: str,
    module: "tvm.IRModule",
    quantized: str,
    rounding: str,
    check: bool | None,
    output: str | None,
) -> "Checks":
    """What is checked: nothing after --no-check."""
    from dataclasses import replace

    from tvm_serenity.relax.quantize import is_quantised
    from tvm_serenity.runtime.checks import Checks
    from tvm_serenity.validation.network import judge_for
    from tvm_serenity.validation.tolerances import LOOSE

    if check is False:
        return Checks(kernels=False)
    judge = judge_for(model)
    if judge is not None and is_quantised(module):
        usual = "float" if judge.runtime in ("onnxruntime", "qlinear") else "tflite"
        if quantized == "off" or rounding not in ("auto", usual):
            judge = replace(judge, tolerance=LOOSE)
    return Checks(judge=judge, folder=Path() if output is None else Path(output).parent)


def _loosened(checks: "Checks", start: "tvm.IRModule") -> "Checks":
    """The same checks with a wide tolerance where the runtime rounds what is float in ``start``."""
    from dataclasses import replace

    from tvm_serenity.relax.attributes import rounds_less
    from tvm_serenity.validation.tolerances import LOOSE

    if checks.judge is None or not rounds_less(start["main"]):
        return checks
    return replace(checks, judge=replace(checks.judge, tolerance=LOOSE))


def _against(checks: "Checks", before: "tvm.IRModule", rewritten: bool) -> "Checks":
    """The same checks against the module before it lost channels, or was rewritten or cut."""
    from dataclasses import replace

    from tvm_serenity.validation.report import EXACT
    from tvm_serenity.validation.tolerances import FLOAT

    return replace(checks, before=before, tolerance=FLOAT if rewritten else EXACT)


def _steps_json(module: "tvm.IRModule", made: "Prepared") -> dict[str, Any]:
    """What was done before the search; ``module`` as it was opened."""
    said = {**quantised_json(module, made), "tuned": _tuned_json(made)}
    if made.rows is not None:
        found = made.rows
        said["rows"] = {
            "ops": len(found.banded.graph.ops),
            "arena_bytes": found.arena_bytes,
            "lower_bound_bytes": found.lower_bound_bytes,
            "outcome": str(found.outcome),
            "left_whole": list(found.banded.network.left_whole),
        }
    if made.rewriting is not None:
        said.update(_rewriting_json(made, made.rewriting))
    return said


def _tuned_json(made: "Prepared") -> dict[str, Any]:
    return {
        "source": made.known.source,
        "target_class": made.known.target_class,
        "kernels": [
            {
                "kernel": one.kernel,
                "form": one.form.text(),
                "scratch_bytes": one.form.scratch_bytes,
                "seconds": one.form.seconds,
                "usual_seconds": one.usual_seconds,
                "taken": one.taken,
            }
            for one in made.chosen
        ],
    }


def _rewriting_json(made: "Prepared", done: "Rewriting") -> dict[str, Any]:
    said = {"rules": made.steps.rewrite, "changed": done.changed, "reason": done.reason}
    found = done.found
    if found is None:
        return {"rewrite": {**said, "applied": [], "refused": [], "rejected": []}}
    return {
        "rewrite": {**said, **found.report.json(), "seconds": found.seconds},
        "rewrite_only": {"peak_bytes": found.rewrite_only_bytes},
        "source": {
            "given_peak_bytes": found.given_bytes,
            "ordered_peak_bytes": found.ordered.peak_bytes,
        },
    }


def _json(model: str, target: str, found: "CompileReport", checks: "Checks") -> dict[str, Any]:
    from tvm_serenity.runtime.build import equal_outputs

    same, stock = equal_outputs(found.ours, found.given), equal_outputs(found.ours, found.stock)
    return {
        "model": model,
        "target": target,
        "ops": len(found.graph.ops),
        "stock": {
            "storage_bytes": found.stock.storage_bytes,
            "workspace_bytes": found.stock.workspace_bytes,
            "total_bytes": found.stock.storage_bytes + found.stock.workspace_bytes,
        },
        "given": {
            "peak_bytes": peak_bytes(found.graph),
            "arena_bytes": found.given.storage_bytes,
        },
        "schedule": {
            "method": found.schedule.method,
            "peak_bytes": found.schedule.peak_bytes,
            "lower_bound_bytes": found.schedule.lower_bound_bytes,
            "outcome": str(found.schedule.outcome),
            "arena_bytes": found.ours.storage_bytes,
            "arena_lower_bound_bytes": found.plan.lower_bound_bytes,
            "arena_outcome": str(found.plan.outcome),
            "order": list(found.schedule.order),
            "states": found.schedule.states,
            "seconds": found.schedule.seconds,
        },
        "output_bytes": found.ours.output_bytes,
        "outputs": {
            "identical_to_given_order": same["identical"],
            "identical_to_stock": stock["identical"],
            "max_abs_error_to_stock": stock["max_abs_error"],
        },
        "order_executed": found.order_executed,
        "checks": _checked(found, checks),
    }


def _checked(found: "CompileReport", checks: "Checks") -> dict[str, Any]:
    return {
        "skipped": not checks.kernels,
        "kernels": None if found.checked is None else found.checked.kernels,
        "input_sets": None if found.checked is None else found.checked.sets,
        "before": checks.before is not None,
        "referee": None if found.verdict is None else found.verdict.json(),
    }


def _export(found: "CompileReport", result: dict[str, Any], target: Path, one_file: bool) -> None:
    """Write the library and what is known about it: all of it, or nothing."""
    from tvm_serenity import text
    from tvm_serenity.runtime import library

    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as made:
            inside = Path(made) / "out"
            inside.mkdir()
            library.write(found.ours.executable, inside, result, one_file)
            (inside / "graph.txt").write_text(text.dump(found.graph))
            shutil.move(str(inside), str(target))
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}") from error


def _print(model: str, found: "CompileReport", result: dict[str, Any]) -> None:
    stock, given, ours = result["stock"], result["given"], result["schedule"]
    outputs = result["outputs"]
    share = ours["arena_bytes"] / max(stock["total_bytes"], 1)
    to_stock = (
        "bit-identical"
        if outputs["identical_to_stock"]
        else f"largest difference {outputs['max_abs_error_to_stock']:.3g}"
    )
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
            "stock's outputs": f"{to_stock}{_float_between(result)}",
            **_quantised_facts(result),
            **_tuned_facts(result["tuned"]),
            "order": "executed as scheduled, seen by the VM's own hook",
        },
    )


def _verdict(found: "CompileReport", result: dict[str, Any]) -> str:
    """What was checked."""
    checks = result["checks"]
    lines = ["bit-identical to the given order, in memory full of garbage"]
    if checks["skipped"]:
        return f"{lines[0]}; kernels NOT validated, no referee: --no-check"
    if checks["kernels"]:
        lines.append(
            f"{checks['kernels']} distinct kernels equal TVM's own on {checks['input_sets']} "
            "sets of inputs"
        )
    if checks["before"]:
        lines.append("the network computes the same as before it was changed")
    if found.verdict is None:
        lines.append("no runtime of its own to compare with")
    else:
        lines.append(found.verdict.text())
    return "; ".join(lines)


def _float_between(result: dict[str, Any]) -> str:
    if "quantized" not in result:
        return ""
    return " (in float between dequantise and quantise: no measure of correctness)"


def _tuned_facts(found: dict[str, Any]) -> dict[str, str]:
    taken = [k for k in found["kernels"] if k["taken"]]
    left = sorted({k["kernel"] for k in found["kernels"]} - {k["kernel"] for k in taken})
    if not found["kernels"]:
        return {}
    lines = [f"{k['kernel']} ({k['form']})" for k in taken]
    said = f"{found['source']}, for {found['target_class']}: {', '.join(lines) or 'none'}"
    room = f"; no room for the scratch of {', '.join(left)}" if left else ""
    return {"faster kernels": said + room}


def _quantised_facts(result: dict[str, Any]) -> dict[str, str]:
    found = result.get("quantized")
    if found is None:
        return {}
    kept = found["kept_float"]
    lines = "".join(f"; {line}" for line in kept)
    said = f"integer kernels ({found['rounding']} rounding), {found['weight_bytes']:,} bytes"
    rows = {"quantised": f"{said} of weights; {len(kept)} operators stay float{lines}"}
    fewer = said_of_channels(found["channels"])
    return {**rows, "channels": fewer} if fewer else rows
