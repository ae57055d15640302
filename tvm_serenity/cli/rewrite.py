"""``serenity rewrite``: replace subgraphs by equivalent ones whose best order has a lower peak."""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.options import Model
from tvm_serenity.commands.rewrite import RewriteRun, RewriteRunOptions, rewrite
from tvm_serenity.options.option import Option, option
from tvm_serenity.options.output import Shown
from tvm_serenity.rewrite import Unrewritten

PARTS_SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class ShownRewrite(Shown):
    """The options of what ``rewrite`` prints; ``explain``: the outcome of each match, and why."""

    explain: bool = option(
        False, Option(flag="--explain", help="Print the outcome of each match, and why.")
    )


@command("rewrite")
def rewrite_command(model: Model, options: RewriteRunOptions, shown: ShownRewrite) -> None:
    """Rewrite MODEL so that its best order needs less memory, and order it.

    The operators of a file are rewritten as they are; in a zoo network, a convolution with its bias
    and activation is one operator. A rewrite is kept if it lowers the peak of the best order of the
    whole network.

    [dim]Examples[/dim]
      serenity rewrite zoo:swiftnet-cell-a --explain
      serenity rewrite model.tflite --rules channelwise,fold --json
    """
    show.warn_without_core()
    result = rewrite(model, options, show.progress)
    if shown.json:
        show.print_json(result.json())
    else:
        print_rewriting(result, shown.explain)
    if result.interrupted:
        show.end_interrupted("rewriting")


def print_rewriting(run: RewriteRun, explain: bool = False) -> None:
    """Print the peaks before and after rewriting; ``explain``: also each match."""
    model, found, plans = run.model, run.found, run.plans
    best, before = found.best, found.ordered
    saving = 1 - best.peak_bytes / max(before.peak_bytes, 1)
    report = found.report
    counts = f"{len(report.applied)} applied, {len(report.rejected)} without gain"
    counts = f"{counts}, {len(report.refused)} refused"
    if isinstance(found, Unrewritten):
        counts = "not searched: the time limit is too short for so many operators"
    show.facts(
        f"{model}: {found.ops[0]} ops, {found.ops[1]} after rewriting",
        {
            "given order": f"peak {found.given_bytes:,} bytes, arena {show.arena_text(plans[0])}",
            "best order": f"peak {before.peak_bytes:,} bytes ({before.outcome}), "
            f"arena {show.arena_text(plans[1])}",
            "rewritten": f"peak {best.peak_bytes:,} bytes ({best.outcome}, {saving:.1%} less), "
            f"arena {show.arena_text(plans[2])}",
            "rewrites": counts,
            **_parts(found.region_peaks),
            "search": f"{found.seconds:.3f} s",
        },
    )
    if explain:
        for line in report.lines():
            show.console.print(line, soft_wrap=True)


def _parts(peaks: Sequence[int]) -> dict[str, str]:
    """Return the peaks of the independently optimised parts, in order; none of a single part."""
    if len(peaks) < 2:
        return {}
    shown = ", ".join(f"{peak:,}" for peak in peaks[:PARTS_SHOWN])
    more = len(peaks) - PARTS_SHOWN
    return {"parts": f"peaks {shown}" + (f" and {more} more" if more > 0 else "")}
