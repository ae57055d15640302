"""``serenity tune``: measure forms of a model's kernels on this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tvm_serenity.cli import app, show
from tvm_serenity.cli.models import part, source
from tvm_serenity.cli.options import Dims, Json, Model, Signature, Target
from tvm_serenity.cli.quantized import Quantized, Rounding, opened_for

if TYPE_CHECKING:
    from tvm_serenity.tuning.tune import TunedKernel

USUAL = "as it is"


@app.command("tune")
def tune_command(
    model: Model,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Write what was measured here.")
    ],
    target: Target = "native",
    trials: Annotated[int, typer.Option(metavar="N", help="Tiles to measure a kernel.")] = 16,
    quantized: Quantized = "auto",
    rounding: Rounding = "auto",
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    dim: Dims = None,
    signature: Signature = None,
    json: Json = False,
) -> None:
    """Measure forms of MODEL's kernels: tiles, and TVM's own schedule, beside the usual form.

    Tiles are those of MetaSchedule with its XGBoost cost model, and of packed layers all. FILE is
    added to where it exists; serenity compile --tuned FILE takes what is clearly faster in it.
    """
    opened = source(model, part(dim, signature))
    module = opened.module("off")
    from tvm_serenity.kernels.measured import NONE, class_of, write
    from tvm_serenity.relax.pipeline import Steps, prepared_for_host
    from tvm_serenity.tuning.tune import tune
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
    steps = Steps(quantized=quantized, rounding=rounding, measured=NONE)
    terminal = show.PlainConsole(stderr=True)
    found = tune(
        prepared_for_host(start, steps, machine),
        trials,
        seed,
        lambda text: terminal.print(f"[dim]{text}[/]") if terminal.is_terminal else None,
    )
    write({one.key: one.measured for one in found}, class_of(machine), output)
    result: dict[str, Any] = {
        "model": model,
        "target": named(machine),
        "target_class": class_of(machine),
        "file": str(output),
        "kernels": [_json(one) for one in found],
    }
    if json:
        show.print_json(result)
        return
    faster = sum(bool(one.measured.forms) for one in found)
    show.facts(
        f"{model}: {len(found)} kernels measured, {faster} with a faster form, in {output}",
        {one.kernel: _text(one) for one in found},
    )


def _json(one: "TunedKernel") -> dict[str, Any]:
    return {
        "kernel": one.kernel,
        "trials": one.trials,
        "forms": [
            {"form": form, "seconds": seconds, "scratch_bytes": scratch}
            for form, seconds, scratch in (
                (USUAL, one.measured.seconds, 0),
                *((f.text(), f.seconds, f.scratch_bytes) for f in one.measured.better()),
            )
        ],
    }


def _text(one: "TunedKernel") -> str:
    usual = f"{one.measured.seconds * 1e6:,.1f} us {USUAL}"
    return "; ".join(
        [usual]
        + [
            f"{f.seconds * 1e6:,.1f} us with {f.text()}"
            + (f" and {f.scratch_bytes:,} bytes of scratch" if f.scratch_bytes else "")
            for f in one.measured.better()
        ]
    )
