"""``serenity rewrite``: subgraphs exchanged for identical ones whose best order needs less."""

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
    """``explain``: what was done with every match, and why."""

    explain: bool = option(
        False, Option(flag="--explain", help="Say of every match what was done and why.")
    )


@command("rewrite")
def rewrite_command(model: Model, options: RewriteRunOptions, shown: ShownRewrite) -> None:
    """Rewrite MODEL so that its best order needs less memory, and order it.

    A network of the zoo is read operator by operator (a convolution with its bias and activation
    is one), a file as it is. What a rewrite is worth is the peak of the best order of all of it.

    [dim]Examples[/dim]
      serenity rewrite zoo:swiftnet-cell-a --explain
      serenity rewrite model.tflite --rules channelwise,fold --json
    """
    show.warn_without_core()
    found = rewrite(model, options, show.progress)
    if shown.json:
        show.print_json(found.json())
    else:
        print_rewriting(found, shown.explain)
    if found.interrupted:
        show.end_interrupted("rewriting")


def print_rewriting(run: RewriteRun, explain: bool = False) -> None:
    """Print what came out; ``explain``: each match, too."""
    model, found, plans = run.model, run.found, run.plans
    best, before = found.best, found.ordered
    less = 1 - best.peak_bytes / max(before.peak_bytes, 1)
    report = found.report
    counts = f"{len(report.applied)} applied, {len(report.rejected)} not worth it"
    counts = f"{counts}, {len(report.refused)} refused"
    if isinstance(found, Unrewritten):
        counts = "none looked for: the time was too short for so many ops"
    show.facts(
        f"{model}: {found.ops[0]} ops, {found.ops[1]} after rewriting",
        {
            "given order": f"peak {found.given_bytes:,} bytes, arena {show.arena_text(plans[0])}",
            "best order": f"peak {before.peak_bytes:,} bytes ({before.outcome}), "
            f"arena {show.arena_text(plans[1])}",
            "rewritten": f"peak {best.peak_bytes:,} bytes ({best.outcome}, {less:.1%} less), "
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
    """The peaks of the parts that are optimised apart, as they run; nothing where it is one."""
    if len(peaks) < 2:
        return {}
    shown = ", ".join(f"{peak:,}" for peak in peaks[:PARTS_SHOWN])
    more = len(peaks) - PARTS_SHOWN
    return {"parts": f"peaks {shown}" + (f" and {more} more" if more > 0 else "")}
