"""``serenity tune``: measure alternative forms of a model's kernels on this machine."""

from typing import TYPE_CHECKING

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.options import Model
from tvm_serenity.commands.tune import USUAL, TuneOptions, tune
from tvm_serenity.options.output import Shown

if TYPE_CHECKING:
    from tvm_serenity.tuning.tune import TunedKernel


@command("tune")
def tune_command(model: Model, options: TuneOptions, shown: Shown) -> None:
    """Measure alternative forms of MODEL's kernels: tiles, and TVM's own schedule.

    MetaSchedule with its XGBoost cost model proposes the tiles; of packed layers, all tiles are
    measured. Results are added to FILE if it exists. serenity compile --tuned FILE selects the
    forms that are clearly faster.
    """
    terminal = show.PlainConsole(stderr=True)
    tuning = tune(
        model,
        options,
        lambda text: terminal.print(f"[dim]{text}[/]") if terminal.is_terminal else None,
    )
    if shown.json:
        show.print_json(tuning.json())
        return
    faster = sum(bool(one.measured.forms) for one in tuning.kernels)
    show.facts(
        f"{model}: {len(tuning.kernels)} kernels measured, {faster} with a faster form, "
        f"in {tuning.output}",
        {one.kernel: _text(one) for one in tuning.kernels},
    )


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
