"""``inspect``: live memory, step by step."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_serenity.commands import program
from tvm_serenity.commands.meaning import Meaning
from tvm_serenity.commands.models import source
from tvm_serenity.commands.progress import Progress, silent
from tvm_serenity.frontends.model_file import ModelFile
from tvm_serenity.graph.reduced import Reduced
from tvm_serenity.memory import Profile, profile
from tvm_serenity.options.model import OpaqueOptions, ReadOptions
from tvm_serenity.options.option import HelpGroup, Option, differing, option
from tvm_serenity.options.output import PLOT
from tvm_serenity.options.speed import TimeLimit
from tvm_serenity.report.figure import plot_profiles
from tvm_serenity.schedule import METHODS, Options, schedule
from tvm_serenity.search.deadline import within

GIVEN, BEST = "given order", "best order"


@dataclass(frozen=True, kw_only=True)
class InspectOptions(ReadOptions, OpaqueOptions, Meaning, TimeLimit):
    """The options of ``inspect``.

    ``method``: the search whose order is shown. ``plot``: the file of a figure of the given and the
    best order. ``compact``: also search for the best order, to show it beside the given one.
    """

    method: str = option(
        "given",
        Option(
            flag="--method",
            help="Search whose order is shown.",
            group=HelpGroup.SPEED,
            choices=tuple(METHODS),
            metavar="METHOD",
        ),
    )
    plot: str | None = option(
        None, differing(PLOT, metavar="FILE.svg|png|pdf", help="Draw the given and the best order.")
    )
    compact: bool = option(
        False,
        Option(flag="--compact", help="Print charts of the given and the best order."),
    )


@dataclass(frozen=True)
class Inspected:
    """The memory profile of an order, and the profiles of the given and the best order."""

    model: str
    opened: ModelFile
    reduced: Reduced
    shown: Profile
    both: Mapping[str, Profile]
    first: int

    def json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        said = _json(self.model, self.reduced, self.shown, self.first)
        return {**said, **program.program_json(self.opened)}


def inspect(
    model: str, options: InspectOptions | None = None, tell: Progress = silent
) -> Inspected:
    """Return the live memory of a model at each step, after drawing the figure of ``plot``."""
    options = options or InspectOptions()
    opened = source(model, options, options.opaque).file()
    reduced = options.apply(opened.graph)
    with within(options.time_limit_s), tell("ordering") as line:
        search = Options(progress=line)
        best = found = schedule(reduced.graph, options.method, search)
        if (options.plot is not None or options.compact) and options.method == "given":
            best = schedule(reduced.graph, "auto", search)
    shown = profile(reduced.graph, found.order)
    both = {GIVEN: profile(reduced.graph), BEST: profile(reduced.graph, best.order)}
    if options.plot is not None:
        plot_profiles(Path(model).name, both, options.plot)
    return Inspected(model, opened, reduced, shown, both, options.first)


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
