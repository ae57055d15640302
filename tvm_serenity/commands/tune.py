"""``tune``: measure alternative forms of a model's kernels on this machine."""

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_serenity.commands.models import source
from tvm_serenity.commands.quantized import opened_for
from tvm_serenity.options.model import Quantized, ReadOptions, RoundingOption
from tvm_serenity.options.option import HelpGroup, Option, differing, option
from tvm_serenity.options.output import OUTPUT
from tvm_serenity.options.speed import Target

if TYPE_CHECKING:
    from tvm_serenity.tuning.tune import TunedKernel

USUAL = "as it is"


@dataclass(frozen=True, kw_only=True)
class TuneOptions(ReadOptions, Quantized, RoundingOption, Target):
    """The options of ``tune``.

    ``output``: the file of measurements. ``trials``: measured tiles per kernel. ``seed``: seed of
    the search.
    """

    output: str = option(MISSING, differing(OUTPUT, help="Write the measurements here."))
    trials: int = option(
        16,
        Option(
            flag="--trials", help="Measured tiles per kernel.", group=HelpGroup.SPEED, metavar="N"
        ),
    )
    seed: int = option(0, Option(flag="--seed", help="Seed of the search.", group=HelpGroup.SPEED))


@dataclass(frozen=True)
class Tuning:
    """The measurements of each kernel of a model on a processor."""

    model: str
    target: str
    target_class: str
    output: str
    kernels: "Sequence[TunedKernel]"

    def json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        return {
            "model": self.model,
            "target": self.target,
            "target_class": self.target_class,
            "file": self.output,
            "kernels": [_json(one) for one in self.kernels],
        }


def tune(
    model: str, options: TuneOptions, say: Callable[[str], None] = lambda _text: None
) -> Tuning:
    """Return the measured forms of a model's kernels, after adding them to ``options.output``.

    MetaSchedule with its XGBoost cost model proposes the tiles; of packed layers, all tiles are
    measured. ``say`` receives a line for each kernel.
    """
    opened = source(model, options)
    module = opened.module("off")
    from tvm_serenity.kernels.measured import NONE, class_of, write
    from tvm_serenity.relax.pipeline import Steps, prepared_for_host
    from tvm_serenity.tuning.tune import tune as tuned
    from tvm_serenity.tvm_targets import (
        architecture,
        check_runs_here,
        instructions,
        named,
        target_of,
    )

    machine = target_of(options.target)
    check_runs_here(f"--target {named(machine)}", architecture(machine), instructions(machine))
    start, rounding = opened_for(opened, module, options.quantized, options.rounding)
    steps = Steps(quantized=options.quantized, rounding=rounding, measured=NONE)
    found = tuned(prepared_for_host(start, steps, machine), options.trials, options.seed, say)
    write({one.key: one.measured for one in found}, class_of(machine), Path(options.output))
    return Tuning(model, named(machine), class_of(machine), options.output, found)


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
