"""``serenity inspect``: the live profile, step by step."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from tvm_serenity.cli import app, program, show
from tvm_serenity.cli.models import part, source
from tvm_serenity.cli.options import (
    Alias,
    Dims,
    Fold,
    InPlace,
    Json,
    Model,
    Opaque,
    Signature,
    Slice,
    TimeLimit,
)
from tvm_serenity.cli.profile_chart import profile_chart
from tvm_serenity.cli.reduce import meaning
from tvm_serenity.deadline import within
from tvm_serenity.memory import Profile, profile
from tvm_serenity.plots import check_plot
from tvm_serenity.report.figure import plot_profiles
from tvm_serenity.schedule import METHODS, Options, schedule
from tvm_serenity.transform import Reduced

BAR = 40
MOST_ROWS, AROUND = 5_000, 100
"""Up to so many steps are all printed; of more, those up to so many before and after the peak."""
MOST_LIVE = 200
"""Tensors that make the peak, largest first, of which so many are printed."""


@app.command("inspect")
def inspect_command(
    model: Model,
    method: Annotated[str, typer.Option(help=f"Whose order: {', '.join(METHODS)}.")] = "given",
    plot: Annotated[
        str | None, typer.Option(metavar="FILE.svg|png|pdf", help="Draw given and best order.")
    ] = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Given and best order as charts of a few lines.")
    ] = False,
    time_limit: TimeLimit = None,
    alias_copies: Alias = False,
    fold_concat: Fold = False,
    in_place: InPlace = False,
    slice_text: Slice = None,
    dim: Dims = None,
    signature: Signature = None,
    opaque: Opaque = None,
    json: Json = False,
) -> None:
    """Show what is in memory at every step of MODEL, and what makes the peak.

    [dim]Examples[/dim]
      serenity inspect model.tflite --compact
      serenity inspect model.tflite --plot profile.svg
    """
    check_plot(plot)
    choices = meaning(alias_copies, fold_concat, in_place, slice_text)
    opened = source(model, part(dim, signature), opaque or ()).file()
    reduced = choices.apply(opened.graph)
    with within(time_limit), show.progress("ordering") as report:
        options = Options(progress=report)
        found = schedule(reduced.graph, method, options)
        best = (
            schedule(reduced.graph, "auto", options)
            if (plot is not None or compact) and method == "given"
            else found
        )
    shown = profile(reduced.graph, found.order)
    both = {
        "given order": profile(reduced.graph),
        "best order": profile(reduced.graph, best.order),
    }
    if plot is not None:
        plot_profiles(Path(model).name, both, plot)
    if json:
        said = _json(model, reduced, shown, first=choices.first or 0)
        show.print_json({**said, **program.program_json(opened)})
    elif compact:
        _print_compact(model, reduced, both)
    else:
        _print(model, reduced, shown, first=choices.first or 0)
        if facts := program.program_facts(opened):
            show.facts("ExecuTorch", facts)


def _json(model: str, reduced: Reduced, shown: Profile, first: int) -> dict[str, object]:
    return {
        "model": model,
        "ops": reduced.nodes,
        "peak_bytes": shown.peak_bytes,
        "peak_step": shown.peak_step,
        "state_bytes": reduced.graph.state_bytes,
        "constant_bytes": reduced.graph.constant_bytes,
        "steps": [
            {
                "op": first + reduced.ops[step.op],
                "name": reduced.graph.ops[step.op].name,
                "live_bytes": step.live_bytes,
                "live": [shown.ranges[i].name for i in live],
            }
            for step, live in zip(shown.steps, shown.live_sets(), strict=True)
        ],
    }


def _print_compact(model: str, reduced: Reduced, profiles: Mapping[str, Profile]) -> None:
    most = max(p.peak_bytes for p in profiles.values())
    show.console.print(f"{model}: {reduced.nodes} ops", style="bold", markup=False)
    for name, shown in profiles.items():
        where = ""
        if shown.peak_step is not None:
            op = reduced.graph.ops[shown.steps[shown.peak_step].op].name
            where = f" at step {shown.peak_step}, {op}"
        show.console.print(f"\n{name}: peak {shown.peak_bytes:,} bytes{where}", markup=False)
        show.console.print(profile_chart(shown, show.console.width, most_bytes=most))


def _rows_of(shown: Profile) -> tuple[int, int]:
    """Which steps are printed: from the first one to before the last one."""
    if len(shown.steps) <= MOST_ROWS or shown.peak_step is None:
        return 0, len(shown.steps)
    return max(0, shown.peak_step - AROUND), min(len(shown.steps), shown.peak_step + AROUND + 1)


def _print(model: str, reduced: Reduced, shown: Profile, first: int) -> None:
    bar = max(8, min(BAR, show.console.width - 48))
    table = Table(box=None, title=f"{model}: {reduced.nodes} ops", title_justify="left")
    table.add_column("op", justify="right", min_width=4)
    table.add_column("bytes", justify="right", min_width=len(f"{shown.peak_bytes:,}"))
    table.add_column("live", min_width=bar)
    table.add_column("name", no_wrap=True, overflow="ellipsis", ratio=1)
    first_shown, last_shown = _rows_of(shown)
    for step in shown.steps[first_shown:last_shown]:
        filled = round(bar * step.live_bytes / max(shown.peak_bytes, 1))
        mark = "[bold red]" if step.live_bytes == shown.peak_bytes else "[cyan]"
        table.add_row(
            str(first + reduced.ops[step.op]),
            f"{step.live_bytes:,}",
            f"{mark}{'█' * filled}[/]",
            escape(reduced.graph.ops[step.op].name),
        )
    show.console.print(table)
    if left := len(shown.steps) - (last_shown - first_shown):
        show.console.print(
            f"steps {first_shown} to {last_shown - 1}, around the peak; {left:,} more in --json, "
            "and all as a chart with --compact"
        )
    live = [r for r in shown.peak_ranges if r.size_bytes]
    rows = {
        r.name: f"{r.size_bytes:,} bytes, steps {r.start} to {r.stop - 1}" for r in live[:MOST_LIVE]
    }
    if left := len(live) - len(rows):
        smaller = sum(r.size_bytes for r in live[MOST_LIVE:])
        rows[f"{left:,} more"] = f"{smaller:,} bytes, none of them larger, in --json"
    show.facts(f"peak {shown.peak_bytes:,} bytes, made of", rows)
