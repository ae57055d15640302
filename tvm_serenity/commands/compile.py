"""``compile``: compile a model with TVM in one arena, run it, and compare it with stock TVM."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_serenity.commands.compile_options import CompileOptions
from tvm_serenity.commands.models import source
from tvm_serenity.commands.progress import Progress, silent
from tvm_serenity.commands.quantized import opened_for, quantised_json
from tvm_serenity.errors import InputError
from tvm_serenity.memory import peak_bytes
from tvm_serenity.quantize.choices import AUTO, OFF
from tvm_serenity.schedule import Options, check_schedule
from tvm_serenity.search.deadline import spending

if TYPE_CHECKING:
    import tvm

    from tvm_serenity.relax.pipeline import Prepared, Steps
    from tvm_serenity.relax.rewrite import Rewriting
    from tvm_serenity.runtime.build import CompileReport
    from tvm_serenity.runtime.checks import Checks


@dataclass(frozen=True)
class CompiledModel:
    """A compiled model with the report of its checks and the figures of ``--json``."""

    model: str
    report: "CompileReport"
    figures: Mapping[str, Any]

    def json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        return dict(self.figures)


def compile(
    model: str, options: CompileOptions | None = None, tell: Progress = silent
) -> CompiledModel:
    """Return a model ordered, placed in one arena, compiled with TVM, run and checked.

    Raises :class:`WrongResultError` if a result is wrong; nothing is written then.
    """
    options = options or CompileOptions()
    with tell(f"reading {model}"):
        opened = source(model, options)
        opened.check_operators(options.quantized != OFF)
        module = opened.module("off")
    from tvm_serenity.relax.pipeline import prepared_for_host
    from tvm_serenity.runtime.build import compile_and_compare
    from tvm_serenity.runtime.library import needs
    from tvm_serenity.tvm_targets import check_runs_here, named, target_of
    from tvm_serenity.validation.input_files import given_inputs

    if options.output is not None and Path(options.output).exists():
        raise InputError(f"--output {options.output}: the directory exists already; name a new one")
    machine = target_of(options.target)
    needed = needs(machine)
    check_runs_here(f"--target {named(machine)}", *needed.values())
    given = given_inputs(list(options.inputs), module) if options.inputs else None
    start, rounding = opened_for(
        opened, module, options.quantized, options.rounding, options.dynamic_range
    )
    os.environ["TVM_NUM_THREADS"] = str(options.threads)  # TVM reads it when it starts threads
    with spending(options.time_limit_s), tell(f"compiling {model}") as line:
        line.step("reading kernels")
        made = prepared_for_host(start, _steps(options, rounding), machine)
        checks = _checks(opened.runtime_file(), module, options)
        checks = _loosened(replace(checks, stock=options.compare), start)
        if made.is_changed and checks.kernels:
            checks = _against(checks, made.integers, bool(options.rewrite))
        found = compile_and_compare(
            module,
            made,
            Options(progress=line),
            inputs=given,
            seed=options.seed,
            checks=checks,
            notify=line.step,
        )
    if options.check:
        check_schedule(found.graph, found.schedule.order, found.schedule.peak_bytes)
    figures = {
        **_json(model, named(machine), found, checks),
        "threads": options.threads,
        "needs": needed,
        **_steps_json(module, made),
    }
    if options.output is not None:
        _export(found, figures, Path(options.output), options.one_file)
    return CompiledModel(model, found, figures)


def _steps(options: CompileOptions, rounding: str) -> "Steps":
    """Return the settings of the passes from the module to its kernels."""
    from tvm_serenity.relax.pipeline import Steps

    return Steps(
        quantized=options.quantized,
        rounding=rounding,
        channels=options.channels,
        rewrite=options.rules if options.rewrite else "",
        rows=options.rows != OFF,
        time_limit_s=options.time_limit_s,
        measured=options.tuned,
        threads=options.threads,
    )


def _checks(model: str, module: "tvm.IRModule", options: CompileOptions) -> "Checks":
    """Return the checks of the compiled model; none with --no-check."""
    from tvm_serenity.relax.quantize import is_quantised
    from tvm_serenity.runtime.checks import Checks
    from tvm_serenity.validation.network import reference_for
    from tvm_serenity.validation.tolerances import LOOSE

    if not options.check:
        return Checks(kernels=False)
    spec = reference_for(model)
    if spec is not None and is_quantised(module):
        usual = "float" if spec.runtime in ("onnxruntime", "qlinear") else "tflite"
        if options.quantized == OFF or options.rounding not in (AUTO, usual):
            spec = replace(spec, tolerance=LOOSE)
    return Checks(reference=spec, folder=Path(options.output or ".").parent)


def _loosened(checks: "Checks", start: "tvm.IRModule") -> "Checks":
    """Return ``checks`` with a wide tolerance if the runtime rounds results that are float here."""
    from tvm_serenity.relax.attributes import rounds_less
    from tvm_serenity.validation.tolerances import LOOSE

    if checks.reference is None or not rounds_less(start["main"]):
        return checks
    return replace(checks, reference=replace(checks.reference, tolerance=LOOSE))


def _against(checks: "Checks", before: "tvm.IRModule", rewritten: bool) -> "Checks":
    """Return ``checks`` with a comparison to ``before``, the module before rewriting or splitting.

    ``rewritten``: float results may differ by rounding; otherwise results must be identical.
    """
    from tvm_serenity.validation.report import EXACT
    from tvm_serenity.validation.tolerances import FLOAT

    return replace(checks, before=before, tolerance=FLOAT if rewritten else EXACT)


def _steps_json(module: "tvm.IRModule", made: "Prepared") -> dict[str, Any]:
    """Return the figures of the passes before the search; ``module``: the model as read."""
    said = {**quantised_json(module, made), "tuned": _tuned_json(made)}
    if made.rows is not None:
        found = made.rows
        said["rows"] = {
            "ops": len(found.banded.graph.ops),
            "arena_bytes": found.arena_bytes,
            "lower_bound_bytes": found.lower_bound_bytes,
            "outcome": str(found.outcome),
            "left_unsplit": list(found.banded.network.unsplit),
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

    same, stock = equal_outputs(found.ours.run, found.given.run), None
    if found.stock.run is not None:
        stock = equal_outputs(found.ours.run, found.stock.run)
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
            "identical_to_stock": stock and stock["identical"],
            "max_abs_error_to_stock": stock and stock["max_abs_error"],
        },
        "order_executed": found.order_executed,
        "checks": _checked(found, checks),
    }


def _checked(found: "CompileReport", checks: "Checks") -> dict[str, Any]:
    return {
        "skipped": not checks.kernels,
        "kernels": None if found.validated is None else found.validated.kernels,
        "known_kernels": None if found.validated is None else found.validated.known,
        "input_sets": None if found.validated is None else found.validated.sets,
        "before": checks.before is not None,
        "reference_runtime": None if found.verdict is None else found.verdict.json(),
    }


def _export(found: "CompileReport", result: dict[str, Any], target: Path, one_file: bool) -> None:
    """Write the library, its report and its graph to ``target``: all files, or none."""
    from tvm_serenity.graph import text
    from tvm_serenity.runtime import library

    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as made:
            inside = Path(made) / "out"
            inside.mkdir()
            library.write(found.ours.built, inside, result, one_file)
            (inside / "graph.txt").write_text(text.dump(found.graph))
            shutil.move(str(inside), str(target))
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}") from error
