"""``serenity build --why``: the kernel of each operator, its cost, and the rejected kernels."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from tvm_serenity.cli import show
from tvm_serenity.cli.latency_line import Unpriced
from tvm_serenity.cycles.estimate import CycleEstimate
from tvm_serenity.firmware.board.latency import spent_on
from tvm_serenity.firmware.result import Project

COLUMNS = (
    *("operator", "kernel", "source", "form", "estimated", "workspace"),
    *("instructions", "cycles", "rejected"),
)
NUMBERS = ("workspace", "instructions", "cycles", "estimated")


def priced(project: Project, estimate: CycleEstimate | Unpriced) -> list[dict[str, Any]]:
    """Return the kernel choices of a project with instructions and cycles of one run.

    Both are null if there is no estimate, or if it cannot separate the operator from others.
    """
    choices = [dict(choice) for choice in project.facts["choices"]]
    if isinstance(estimate, Unpriced):
        return choices
    for choice, spent in zip(choices, spent_on(project, estimate), strict=True):
        if spent is not None:
            choice |= {"instructions": spent.instructions, "cycles": list(spent.cycles)}
    return choices


def show_choices(choices: Sequence[Mapping[str, Any]], estimate: CycleEstimate | Unpriced) -> None:
    """Print the kernel choices; without an estimate, the reason."""
    known = isinstance(estimate, CycleEstimate)
    table = Table(box=None)
    for column in COLUMNS:
        if known or column not in NUMBERS[1:3]:
            table.add_column(column, justify="right" if column in NUMBERS else "left")
    for one in choices:
        words = [escape(one[key]) for key in ("operator", "kernel", "made_by")]
        form, cost = _estimated(one)
        figures = [escape(form), cost, f"{one['workspace_bytes']:,}"]
        if known:
            count, cycles = one["instructions"], one["cycles"]
            figures.append("" if count is None else f"{count:,}")
            figures.append("" if cycles is None else f"{cycles[0]:,} to {cycles[1]:,}")
        table.add_row(*words, *figures, escape("; ".join(one["others"])))
    show.console.print(table)
    if isinstance(estimate, Unpriced):
        show.console.print(f"cycles are not known: {estimate.reason}", markup=False)


def _estimated(choice: Mapping[str, Any]) -> tuple[str, str]:
    """Return the form of the chosen kernel, and its expected cost with the unit."""
    for one in choice["candidates"]:
        if not one["reason"]:
            cost = one["cost"]
            return one["form"], "" if cost is None else f"{cost:,} {one['unit']}"
    return "", ""
