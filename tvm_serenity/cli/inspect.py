"""``serenity inspect``: live memory, step by step."""

from collections.abc import Mapping

from rich.markup import escape
from rich.table import Table

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.options import Model
from tvm_serenity.cli.profile_chart import profile_chart
from tvm_serenity.cli.program import program_facts
from tvm_serenity.commands.inspect import InspectOptions, inspect
from tvm_serenity.graph.reduced import Reduced
from tvm_serenity.memory import Profile
from tvm_serenity.options.output import Shown

BAR = 40
MOST_ROWS, AROUND = 5_000, 100
"""A profile of at most ``MOST_ROWS`` steps is printed in full; of a longer one, ``AROUND`` steps
before and after the peak."""
MOST_LIVE = 200
"""Number of tensors live at the peak that are printed, largest first."""


@command("inspect")
def inspect_command(model: Model, options: InspectOptions, shown: Shown) -> None:
    """Print the live memory of MODEL at each step, and the tensors live at the peak.

    [dim]Examples[/dim]
      serenity inspect model.tflite --compact
      serenity inspect model.tflite --plot profile.svg
    """
    inspected = inspect(model, options, show.progress)
    if shown.json:
        show.print_json(inspected.json())
    elif options.compact:
        _print_compact(model, inspected.reduced, inspected.both)
    else:
        _print(model, inspected.reduced, inspected.shown, inspected.first)
        if facts := program_facts(inspected.opened):
            show.facts("ExecuTorch", facts)


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


def _rows_of(profile: Profile) -> tuple[int, int]:
    """Return the range of steps that are printed: first, and last + 1."""
    steps, peak = len(profile.steps), profile.peak_step
    if steps <= MOST_ROWS or peak is None:
        return 0, steps
    return max(0, peak - AROUND), min(steps, peak + AROUND + 1)


def _print(model: str, reduced: Reduced, profile: Profile, first: int) -> None:
    bar = max(8, min(BAR, show.console.width - 48))
    table = Table(box=None, title=f"{model}: {reduced.nodes} ops", title_justify="left")
    table.add_column("op", justify="right", min_width=4)
    table.add_column("bytes", justify="right", min_width=len(f"{profile.peak_bytes:,}"))
    table.add_column("live", min_width=bar)
    table.add_column("name", no_wrap=True, overflow="ellipsis", ratio=1)
    first_shown, last_shown = _rows_of(profile)
    for step in profile.steps[first_shown:last_shown]:
        filled = round(bar * step.live_bytes / max(profile.peak_bytes, 1))
        mark = "[bold red]" if step.live_bytes == profile.peak_bytes else "[cyan]"
        table.add_row(
            str(first + reduced.ops[step.op]),
            f"{step.live_bytes:,}",
            f"{mark}{'█' * filled}[/]",
            escape(reduced.graph.ops[step.op].name),
        )
    show.console.print(table)
    if omitted := len(profile.steps) - (last_shown - first_shown):
        show.console.print(
            f"steps {first_shown} to {last_shown - 1}, around the peak; --json has the other "
            f"{omitted:,}, --compact draws all of them"
        )
    live = [r for r in profile.peak_ranges if r.size_bytes]
    rows = {
        r.name: f"{r.size_bytes:,} bytes, steps {r.start} to {r.stop - 1}" for r in live[:MOST_LIVE]
    }
    if omitted := len(live) - len(rows):
        smaller = sum(r.size_bytes for r in live[MOST_LIVE:])
        rows[f"{omitted:,} more"] = f"{smaller:,} bytes, none larger; see --json"
    show.facts(f"peak {profile.peak_bytes:,} bytes, live there:", rows)
