"""``rewrite``: replace subgraphs by equivalent ones whose best order has a lower peak."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_serenity.commands.models import ModelSource, source
from tvm_serenity.commands.progress import Progress, searching_s, silent
from tvm_serenity.graph import Graph
from tvm_serenity.memory import profile
from tvm_serenity.options.checks import Check
from tvm_serenity.options.memory import ALIGN, ALL_RULES, RULES
from tvm_serenity.options.model import ReadOptions
from tvm_serenity.options.option import OptionGroup, differing, option, values_of
from tvm_serenity.options.output import PLOT
from tvm_serenity.options.speed import TimeLimit
from tvm_serenity.plan import Plan, PlanOptions, check_plan
from tvm_serenity.plan.joint import MANY_OPS, place_in_time
from tvm_serenity.report.figure import plot_profiles
from tvm_serenity.rewrite import (
    Net,
    Rewritten,
    Unrewritten,
    order_alone,
    rule_names,
    too_late_to_match,
)
from tvm_serenity.rewrite import (
    RewriteOptions as Rules,
)
from tvm_serenity.rewrite import (
    rewrite as rewritten,
)
from tvm_serenity.rewrite.from_graph import net_of
from tvm_serenity.schedule import check_schedule
from tvm_serenity.search.deadline import within

REWRITE_SHARE = 0.8
PLAN_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class RewriteRunOptions(ReadOptions, TimeLimit, Check):
    """The options of ``rewrite``.

    ``rules``: the rewrite rules to try: "all", "paper" (the two rules of the SERENITY paper), or
    names separated by commas. ``align``: the alignment of every tensor in the arena, in bytes.
    ``plot``: the file for a figure of live memory in the given order, in the best order and after
    rewriting.
    """

    rules: str = option(ALL_RULES, RULES)
    align: int = option(1, ALIGN)
    plot: str | None = option(
        None,
        differing(
            PLOT,
            metavar="FILE.svg|png|pdf",
            help="Draw live memory: given order, best order, rewritten.",
        ),
    )


@dataclass(frozen=True)
class RewriteRun:
    """A rewritten model, with the plans of the given, the best and the rewritten order."""

    model: str
    options: RewriteRunOptions
    found: Rewritten | Unrewritten
    plans: Sequence[Plan]

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search with the best so far."""
        return self.found.interrupted or any(plan.interrupted for plan in self.plans)

    def json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        rules, check = self.options.rules, self.options.check
        return rewrite_json(self.model, rules, self.found, self.plans, check)


def rewriting(asked: OptionGroup) -> RewriteRunOptions:
    """Return the options of ``rewrite`` among the options of another command."""
    return RewriteRunOptions(**values_of(asked, RewriteRunOptions))


def rewrite(
    model: str, options: RewriteRunOptions | None = None, tell: Progress = silent
) -> RewriteRun:
    """Return a model rewritten for a lower peak, ordered and placed.

    The operators of a file are rewritten as they are; in a zoo network, a convolution with its bias
    and activation is one operator.
    """
    options = options or RewriteRunOptions()
    opened = source(model, options)
    given = rewrite_input(opened)
    rules = Rules(rules=options.rules, keep_on_interrupt=True)
    rule_names(options.rules)  # an unknown rule fails before any work
    with within(searching_s(options.time_limit_s)), tell("rewriting"):
        with within(None, REWRITE_SHARE):
            found = rewritten_or_ordered(given, rules)
        with within(0.0 if found.interrupted else None):
            plans = placed(found, options.align)
    if options.check:
        check_schedule(found.graph, found.best.order, found.best.peak_bytes)
        if plans[2].is_placed:
            check_plan(plans[2].buffers, plans[2].offsets)
    if options.plot is not None:
        _plot(Path(model).name, found, options.plot)
    return RewriteRun(model, options, found, plans)


def _plot(title: str, found: Rewritten | Unrewritten, path: str) -> None:
    """Write live memory over time before and after rewriting."""
    source = found.source.graph if isinstance(found, Rewritten) else found.graph
    profiles = {
        "given order": profile(source),
        "best order": profile(source, found.ordered.order),
    }
    if isinstance(found, Rewritten):
        profiles["rewritten"] = profile(found.graph, found.best.order)
    plot_profiles(title, profiles, path)


def rewrite_input(opened: ModelSource) -> Graph | Net:
    """Return the graph of a file, or the net of a zoo network.

    The net of a file is built later, within the time limit.
    """
    return read(opened) if opened.is_zoo else opened.file().graph


def rewritten_or_ordered(given: Graph | Net, options: Rules) -> Rewritten | Unrewritten:
    """Return a rewritten model; without time for rewriting, its best order alone."""
    if isinstance(given, Net):
        return rewritten(given, options)
    if too_late_to_match(given):
        return order_alone(given, options)
    try:
        net = net_of(given)
    except KeyboardInterrupt:
        with within(0.0):
            return order_alone(given, options, interrupted=True)
    return rewritten(net, options)


def read(opened: ModelSource) -> Net:
    """Return the net of a model; its memory includes inputs and outputs."""
    if not opened.is_zoo:
        return net_of(opened.file().graph)
    from tvm_serenity.relax.rewrite_read import prepared, read_net

    net: Net = read_net(prepared(opened.module()), name=opened.spec, external=False).net
    return net


def placed(found: Rewritten | Unrewritten, align: int = 1) -> list[Plan]:
    """Return the plans of the net in the given order, in its best order, and rewritten.

    After Ctrl-C, the plans of a network with many operators are empty.
    """
    if found.interrupted and found.ops[2] >= MANY_OPS:
        return [Plan.unplaced()] * 3
    source = found.source.graph if isinstance(found, Rewritten) else found.graph
    given = tuple(range(len(source.ops)))
    known = {given: _place(source, given, align)}
    if found.ordered.order not in known:
        known[found.ordered.order] = _place(source, found.ordered.order, align)
    before = [known[given], known[found.ordered.order]]
    if found.best is found.ordered:
        return [*before, before[-1]]
    return [*before, _place(found.graph, found.best.order, align)]


def _place(graph: Graph, order: Sequence[int], align: int) -> Plan:
    options = PlanOptions(time_limit_s=PLAN_SECONDS, keep_on_interrupt=True)
    return place_in_time(graph, order, align, options)[1]


def rewrite_json(
    model: str, rules: str, found: Rewritten | Unrewritten, plans: Sequence[Plan], check: bool
) -> dict[str, Any]:
    """Return the result as ``--json`` prints it; ``plans``: the plans of :func:`placed`."""
    best, before = found.best, found.ordered
    given_ops, ops, file_ops = found.ops
    return {
        "model": model,
        "ops": ops,
        "nodes": ops,
        "file_ops": file_ops,
        "given": {
            "ops": given_ops,
            "peak_bytes": found.given_bytes,
            "arena_bytes": plans[0].placed_bytes,
        },
        "ordered": {
            "peak_bytes": before.peak_bytes,
            "lower_bound_bytes": before.lower_bound_bytes,
            "outcome": str(before.outcome),
            "arena_bytes": plans[1].placed_bytes,
        },
        "rewrite": {
            "rules": rules,
            "changed": found.changed,
            "nodes": ops,
            "limit": None if isinstance(found, Rewritten) else _limit(found),
            "region_peak_bytes": list(found.region_peaks),
            **found.report.json(),
            "seconds": found.seconds,
        },
        "rewrite_only": {"peak_bytes": found.rewrite_only_bytes},
        "schedule": {
            "method": best.method,
            "peak_bytes": best.peak_bytes,
            "lower_bound_bytes": best.lower_bound_bytes,
            "outcome": str(best.outcome),
            "arena_bytes": plans[2].placed_bytes,
            "arena_lower_bound_bytes": plans[2].lower_bound_bytes,
            "arena_outcome": str(plans[2].outcome),
            "order": found.names,
            "states": best.states,
            "seconds": best.seconds,
        },
        "checked": check,
    }


def _limit(found: Unrewritten) -> str:
    """Return the reason why no rule was matched: "interrupt" or "time"."""
    return "interrupt" if found.interrupted else "time"
