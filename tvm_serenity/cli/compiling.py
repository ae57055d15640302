"""``serenity compile``: order, plan, build, run, and compare with stock TVM."""

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from tvm_serenity.cli import app, show
from tvm_serenity.cli.models import source
from tvm_serenity.cli.quantized import Quantized, Rounding, integer_module
from tvm_serenity.cli.schedule import Dims, Json, Model, Rewrite, TimeLimit
from tvm_serenity.errors import CheckError, InputError
from tvm_serenity.memory import peak_bytes
from tvm_serenity.plan import check_plan
from tvm_serenity.schedule import Options, check_schedule

if TYPE_CHECKING:
    from tvm_serenity.runtime.build import Comparison


@app.command("compile")
def compile_command(
    model: Model,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="DIR", help="Write the library and report here."),
    ] = None,
    target: Annotated[str, typer.Option(help="TVM target.")] = "llvm",
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
    tuned: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Use the tiles that serenity tune measured."),
    ] = None,
    workspace_limit: Annotated[
        int,
        typer.Option(metavar="BYTES", help="With --tuned: scratch that a kernel may need."),
    ] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the random inputs.")] = 0,
    dim: Dims = None,
    json: Json = False,
    check: Annotated[
        bool, typer.Option("--check", help="Verify order and plan by the naive checkers.")
    ] = False,
) -> None:
    """Schedule MODEL, plan one arena, compile it with TVM, run it, compare with stock TVM.

    The bytes are those the Relax VM allocates while it runs; parameters and results belong to the
    caller and are counted apart. Outputs are compared bit by bit with the same kernels in the
    given order, and with stock TVM. A quantised model runs on integer kernels, while stock TVM
    runs it in float between dequantise and quantise. With -o, DIR receives lib.so (load it with
    tvm.runtime.load_module), graph.txt and report.json.
    """
    module = source(model, dim or ()).module()
    from tvm_serenity.runtime.build import compile_and_compare

    if output is not None and Path(output).exists():
        raise InputError(f"{output}: exists already; name a new directory")
    show.warn_without_core()
    changed, said = integer_module(model, module, quantized, rounding)
    if rows and rewrite:
        raise InputError("--rows and --rewrite: choose one")
    if rows:
        changed, splitting = _in_rows(changed, time_limit, target)
        said = {**said, **splitting}
    if rewrite:
        changed, rewriting = _rewritten(changed, rules, time_limit, target)
        said = {**said, **rewriting}
    with show.progress(f"scheduling {model}") as report:
        terminal = Console(stderr=True)
        found = compile_and_compare(
            module,
            target,
            Options(time_limit_s=time_limit, progress=report),
            seed=seed,
            rewritten=changed,
            tuned=None if tuned is None else _measured(tuned, target, workspace_limit),
            notify=lambda text: terminal.print(f"[dim]{text}[/]") if terminal.is_terminal else None,
        )
    if check:
        check_schedule(found.graph, found.schedule.order, found.schedule.peak_bytes)
        check_plan(found.plan.buffers, found.plan.offsets)
    result = {**_json(model, target, found), **said}
    if output is not None:
        _export(found, result, Path(output))
    if json:
        show.print_json(result)
    else:
        _print(model, found, result)
    if not result["outputs"]["identical_to_given_order"] or not found.order_executed:
        raise CheckError(f"{model}: the reordered module does not compute the same")


def _in_rows(module: Any, time_limit: float | None, target: str) -> tuple[Any, dict[str, Any]]:
    """The module split into rows, and what JSON says of that."""
    from tvm_serenity.passes.relax.rows import by_rows
    from tvm_serenity.rows import Limits

    made, found = by_rows(module, target, Limits(time_limit or 10.0))
    said = {
        "ops": len(found.banded.graph.ops),
        "arena_bytes": found.arena_bytes,
        "lower_bound_bytes": found.lower_bound_bytes,
        "outcome": str(found.outcome),
        "left_whole": list(found.banded.network.left_whole),
    }
    return made, {"rows": said}


def _measured(file: Path, target: str, limit: int) -> Any:
    import tvm

    from tvm_serenity.kernels.tune import tuned

    return tuned(file, tvm.target.Target(target), limit)


def _rewritten(
    module: Any, rules: str, time_limit: float | None, target: str
) -> tuple[Any, dict[str, Any]]:
    """The module after ``SerenityRewrite``, and what JSON says of that."""
    from tvm_serenity.passes.relax.rewrite import rewrite_module
    from tvm_serenity.rewrite import Options as Rewriting

    made, done = rewrite_module(module, Rewriting(rules=rules, time_limit_s=time_limit), target)
    found = done.found
    said = {"rules": rules, "changed": made is not module, "reason": done.reason}
    if found is None:
        return made, {"rewrite": {**said, "applied": [], "refused": [], "rejected": []}}
    return made, {
        "rewrite": {**said, **found.report.json(), "seconds": found.seconds},
        "rewrite_only": {"peak_bytes": found.rewrite_only_bytes},
        "source": {
            "given_peak_bytes": found.given_bytes,
            "ordered_peak_bytes": found.ordered.peak_bytes,
        },
    }


def _json(model: str, target: str, found: "Comparison") -> dict[str, Any]:
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
    }


def _export(found: "Comparison", result: dict[str, Any], target: Path) -> None:
    """Write the library and what is known about it: all of it, or nothing."""
    import json

    from tvm_serenity import text

    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as made:
            inside = Path(made) / "out"
            inside.mkdir()
            found.ours.executable.export_library(str(inside / "lib.so"))
            (inside / "graph.txt").write_text(text.dump(found.graph))
            (inside / "report.json").write_text(json.dumps(result, indent=2) + "\n")
            shutil.move(str(inside), str(target))
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}") from error


def _print(model: str, found: "Comparison", result: dict[str, Any]) -> None:
    stock, given, ours = result["stock"], result["given"], result["schedule"]
    outputs = result["outputs"]
    same = "bit-identical" if outputs["identical_to_given_order"] else "DIFFERENT"
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
            f"(peak {ours['peak_bytes']:,}), {ours['arena_bytes'] / stock['total_bytes']:.0%} of "
            "stock TVM",
            "proof": f"{ours['outcome']}: no order needs less than "
            f"{ours['lower_bound_bytes']:,} bytes ({ours['states']:,} states, "
            f"{ours['seconds']:.3f} s)",
            "outputs": f"{same} to the given order; to stock TVM: {to_stock}",
            **_quantised_facts(result),
            "order": "executed as scheduled, seen by the VM's own hook"
            if found.order_executed
            else "NOT executed as scheduled",
        },
    )


def _quantised_facts(result: dict[str, Any]) -> dict[str, str]:
    found = result.get("quantized")
    if found is None:
        return {}
    kept = found["kept_float"]
    lines = "".join(f"\n{line}" for line in kept)
    said = f"integer kernels ({found['rounding']} rounding), {found['weight_bytes']:,} bytes"
    return {"quantised": f"{said} of weights; {len(kept)} operators stay float{lines}"}
