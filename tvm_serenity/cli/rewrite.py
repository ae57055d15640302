"""``serenity rewrite``: subgraphs exchanged for identical ones whose best order needs less."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from tvm_serenity.arena import MANY_OPS, place_in_time
from tvm_serenity.cli import app, show
from tvm_serenity.cli.models import ModelSource, Part, part, source
from tvm_serenity.cli.options import SEARCH_SHARE, Dims, Json, Model, Signature, TimeLimit
from tvm_serenity.deadline import within
from tvm_serenity.graph import Graph
from tvm_serenity.plan import Plan, PlanOptions, check_plan
from tvm_serenity.rewrite import (
    Net,
    RewriteOptions,
    Rewritten,
    Unrewritten,
    order_alone,
    rewrite,
    rule_names,
    too_late_to_match,
)
from tvm_serenity.rewrite.from_graph import net_of
from tvm_serenity.schedule import check_schedule

RulesOption = Annotated[
    str,
    typer.Option("--rules", help="all, paper (SERENITY's two, wherever they match), or names."),
]
REWRITE_SHARE = 0.8
PLAN_SECONDS = 5.0
PARTS_SHOWN = 12


@app.command("rewrite")
def rewrite_command(
    model: Model,
    rules: RulesOption = "all",
    explain: Annotated[
        bool, typer.Option("--explain", help="Say of every match what was done and why.")
    ] = False,
    time_limit: TimeLimit = None,
    dim: Dims = None,
    signature: Signature = None,
    json: Json = False,
    check: Annotated[
        bool, typer.Option("--check", help="Verify orders and plans by the naive checkers.")
    ] = False,
) -> None:
    """Rewrite MODEL so that its best order needs less memory, and order it.

    A network of the zoo is read operator by operator (a convolution with its bias and activation
    is one), a file as it is. What a rewrite is worth is the peak of the best order of all of it.

    [dim]Examples[/dim]
      serenity rewrite zoo:swiftnet-cell-a --explain
      serenity rewrite model.tflite --rules channelwise,fold --json
    """
    run_rewrite(
        model, part(dim, signature), rules, time_limit, json=json, check=check, explain=explain
    )


def run_rewrite(
    model: str,
    of: Part,
    rules: str,
    time_limit: float | None,
    *,
    json: bool,
    check: bool,
    explain: bool = False,
    align: int = 1,
) -> None:
    """Rewrite, order and place a model, and print what came out."""
    opened = source(model, of)
    given = unread(opened)
    options = RewriteOptions(rules=rules, keep_on_interrupt=True)
    rule_names(rules)  # refused before any work
    show.warn_without_core()
    searching = None if time_limit is None else SEARCH_SHARE * time_limit
    with within(searching), show.progress("rewriting"):
        with within(None, REWRITE_SHARE):
            found = found_of(given, options)
        with within(0.0 if found.interrupted else None):
            plans = placed(found, align)
    if check:
        check_schedule(found.graph, found.best.order, found.best.peak_bytes)
        if plans[2].is_placed:
            check_plan(plans[2].buffers, plans[2].offsets)
    if json:
        show.print_json(rewrite_json(model, rules, found, plans, check))
    else:
        _print(model, found, plans, explain)
    if found.interrupted or any(placed.interrupted for placed in plans):
        show.end_interrupted("rewriting")


def unread(opened: ModelSource) -> Graph | Net:
    """Return the graph of a file, of which no net is made yet; the net of any other model."""
    return read(opened) if opened.is_zoo else opened.file().graph


def found_of(given: Graph | Net, options: RewriteOptions) -> Rewritten | Unrewritten:
    """Return a model rewritten, or where that is too late in its best order alone."""
    if isinstance(given, Net):
        return rewrite(given, options)
    if too_late_to_match(given):
        return order_alone(given, options)
    try:
        net = net_of(given)
    except KeyboardInterrupt:
        with within(0.0):
            return order_alone(given, options, interrupted=True)
    return rewrite(net, options)


def read(opened: ModelSource) -> Net:
    """Return the net of a model, inputs and outputs counted."""
    if not opened.is_zoo:
        return net_of(opened.file().graph)
    from tvm_serenity.relax.rewrite_read import prepared, read_net

    net: Net = read_net(prepared(opened.module()), name=opened.spec, external=False).net
    return net


def placed(found: Rewritten | Unrewritten, align: int = 1) -> list[Plan]:
    """Return the plans of the net as given, in its best order, and rewritten.

    After Ctrl-C those of many ops are left out.
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
    """Return what JSON says of a rewrite run; ``plans`` are those of ``placed``."""
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
            "arena_bytes": show.placed_bytes(plans[0]),
        },
        "ordered": {
            "peak_bytes": before.peak_bytes,
            "lower_bound_bytes": before.lower_bound_bytes,
            "outcome": str(before.outcome),
            "arena_bytes": show.placed_bytes(plans[1]),
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
            "arena_bytes": show.placed_bytes(plans[2]),
            "arena_lower_bound_bytes": plans[2].lower_bound_bytes,
            "arena_outcome": str(plans[2].outcome),
            "order": found.names,
            "states": best.states,
            "seconds": best.seconds,
        },
        "checked": check,
    }


def _limit(found: Unrewritten) -> str:
    """What kept the rules from being matched."""
    return "interrupt" if found.interrupted else "time"


def _print(
    model: str, found: Rewritten | Unrewritten, plans: Sequence[Plan], explain: bool
) -> None:
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
