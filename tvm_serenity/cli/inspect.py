"""``serenity inspect``: the live profile, step by step."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from tvm_serenity.cli import app, show
from tvm_serenity.cli.models import source
from tvm_serenity.cli.reduce import meaning
from tvm_serenity.cli.schedule import Alias, Dims, Fold, InPlace, Json, Model, Slice, TimeLimit
from tvm_serenity.errors import InputError, MissingPartError
from tvm_serenity.memory import Profile, profile
from tvm_serenity.schedule import METHODS, Options, schedule
from tvm_serenity.transform import Reduced

BAR = 40


@app.command("inspect")
def inspect_command(
    model: Model,
    method: Annotated[str, typer.Option(help=f"Whose order: {', '.join(METHODS)}.")] = "given",
    plot: Annotated[
        str | None, typer.Option(metavar="FILE.svg|png|pdf", help="Draw given and best order.")
    ] = None,
    time_limit: TimeLimit = None,
    alias_copies: Alias = False,
    fold_concat: Fold = False,
    in_place: InPlace = False,
    slice_text: Slice = None,
    dim: Dims = None,
    json: Json = False,
) -> None:
    """Show what is in memory at every step of MODEL, and what makes the peak."""
    choices = meaning(alias_copies, fold_concat, in_place, slice_text)
    opened = source(model, dim or ()).file()
    reduced = choices.apply(opened.graph)
    with show.progress("ordering") as report:
        options = Options(time_limit_s=time_limit, progress=report)
        found = schedule(reduced.graph, method, options)
        best = (
            found if plot is None or method != "given" else schedule(reduced.graph, "auto", options)
        )
    shown = profile(reduced.graph, found.order)
    if plot is not None:
        try:
            from tvm_serenity.plots import plot_profiles
        except ImportError as error:
            raise MissingPartError(
                f"--plot needs matplotlib: pip install 'tvm-serenity[plot]' ({error})"
            ) from None
        if not plot.lower().endswith((".svg", ".png", ".pdf")):
            raise InputError(f"{plot}: plots are written as .svg, .png or .pdf")
        plot_profiles(
            Path(model).name,
            {
                "given order": profile(reduced.graph),
                "best order": profile(reduced.graph, best.order),
            },
            plot,
        )
    if json:
        show.print_json(_json(model, reduced, shown, first=choices.first or 0))
    else:
        _print(model, reduced, shown, first=choices.first or 0)


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
                "live": [shown.ranges[i].name for i in step.live],
            }
            for step in shown.steps
        ],
    }


def _print(model: str, reduced: Reduced, shown: Profile, first: int) -> None:
    bar = max(8, min(BAR, show.console.width - 48))
    table = Table(box=None, title=f"{model}: {reduced.nodes} ops", title_justify="left")
    table.add_column("op", justify="right", min_width=4)
    table.add_column("bytes", justify="right", min_width=len(f"{shown.peak_bytes:,}"))
    table.add_column("live", min_width=bar)
    table.add_column("name", no_wrap=True, overflow="ellipsis", ratio=1)
    for step in shown.steps:
        filled = round(bar * step.live_bytes / max(shown.peak_bytes, 1))
        mark = "[bold red]" if step.live_bytes == shown.peak_bytes else "[cyan]"
        table.add_row(
            str(first + reduced.ops[step.op]),
            f"{step.live_bytes:,}",
            f"{mark}{'█' * filled}[/]",
            escape(reduced.graph.ops[step.op].name),
        )
    show.console.print(table)
    rows = {
        r.name: f"{r.size_bytes:,} bytes, steps {r.start} to {r.stop - 1}"
        for r in shown.peak_ranges
    }
    show.facts(f"peak {shown.peak_bytes:,} bytes, made of", rows)
