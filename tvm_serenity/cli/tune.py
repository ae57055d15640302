"""``serenity tune``: measure register tiles of a model's kernels on this machine."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tvm_serenity.cli import app, show
from tvm_serenity.cli.models import source
from tvm_serenity.cli.options import Dims, Json, Model, Target
from tvm_serenity.cli.quantized import Quantized, Rounding, opened_for


@app.command("tune")
def tune_command(
    model: Model,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Write the best tiles here.")
    ],
    target: Target = "native",
    trials: Annotated[int, typer.Option(metavar="N", help="Tiles to measure a kernel.")] = 16,
    quantized: Quantized = "auto",
    rounding: Rounding = "auto",
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    dim: Dims = None,
    json: Json = False,
) -> None:
    """Measure tiles of MODEL's kernels with MetaSchedule and its XGBoost cost model.

    Every candidate is a lean schedule. FILE is added to where it exists; serenity compile --tuned
    FILE uses what it holds.
    """
    opened = source(model, dim or ())
    module = opened.module("off")
    from tvm_serenity import compat
    from tvm_serenity.kernels.tune import tune, write
    from tvm_serenity.relax.pipeline import Steps, prepared
    from tvm_serenity.tvm_targets import (
        architecture,
        check_runs_here,
        instructions,
        named,
        target_of,
    )

    machine = target_of(target)
    check_runs_here(f"--target {named(machine)}", architecture(machine), instructions(machine))
    start, rounding = opened_for(opened, module, quantized, rounding)
    steps = Steps(quantized=quantized, rounding=rounding)
    functions = prepared(start, steps, machine).plain.functions.items()
    kernels = {
        variable.name_hint: function
        for variable, function in functions
        if compat.is_prim_func(function) and compat.has_blocks(function)
    }
    terminal = show.PlainConsole(stderr=True)
    found = tune(
        kernels,
        machine,
        trials,
        seed,
        lambda text: terminal.print(f"[dim]{text}[/]") if terminal.is_terminal else None,
    )
    write(found, output)
    result: dict[str, Any] = {
        "model": model,
        "target": named(machine),
        "file": str(output),
        "kernels": [
            {
                "kernel": m.name,
                "trials": m.trials,
                "best_seconds": m.seconds,
                "channels": m.tiling.channels,
                "columns": m.tiling.columns,
                "vector": m.tiling.vector,
            }
            for m in found
        ],
    }
    if json:
        show.print_json(result)
        return
    show.facts(
        f"{model}: {len(found)} of {len(kernels)} kernels measured, tiles in {output}",
        {
            m.name: f"{m.seconds * 1e6:,.1f} us with {m.tiling.channels} x {m.tiling.columns}, "
            f"best of {m.trials}"
            for m in found
        },
    )
