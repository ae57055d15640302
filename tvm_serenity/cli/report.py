"""``serenity report``: everything about a model's memory on one page that needs no network."""

import shlex
import sys
import tempfile
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tvm_serenity import __version__
from tvm_serenity.arena import Joint, Placed, place_order, schedule_for_arena
from tvm_serenity.boards import Board, board, names
from tvm_serenity.cli import app, show
from tvm_serenity.cli.explain import (
    BoardName,
    all_measures,
    channel_claims,
    claims_of,
    explain_json,
)
from tvm_serenity.cli.models import ModelSource, Part, part, source
from tvm_serenity.cli.offchip import versions_of
from tvm_serenity.cli.options import Alias, Dims, Fold, InPlace, Json, Model, Signature, TimeLimit
from tvm_serenity.cli.reduce import Meaning, meaning
from tvm_serenity.cli.rewrite import found_of, placed, rewrite_json, unread
from tvm_serenity.cli.schedule import schedule_json
from tvm_serenity.deadline import leaving, within
from tvm_serenity.errors import InputError
from tvm_serenity.explain.claims import Claim
from tvm_serenity.explain.fit import fit_json
from tvm_serenity.explain.measures import Measure
from tvm_serenity.files import write_bytes
from tvm_serenity.graph import Graph
from tvm_serenity.offchip import Model as Traffic
from tvm_serenity.offchip import Sweep, points_of, run_points
from tvm_serenity.plan import Plan, check_plan
from tvm_serenity.report.choices import choice_json
from tvm_serenity.report.page import chart_library, page
from tvm_serenity.report.proof import proof_json
from tvm_serenity.report.shapes import graph_json, order_json
from tvm_serenity.report.traffic import settings_for
from tvm_serenity.rewrite import RewriteOptions, Rewritten, Unrewritten
from tvm_serenity.schedule import Options, Schedule, check_schedule

PAGE_S, LEAST_PAGE_S = 4e-5, 0.1
"""Seconds an operator that its checks and its part of the page take, whatever the limit; and those
that any page takes."""


@dataclass(frozen=True)
class Request:
    """What a report is asked for."""

    model: str
    of: Part
    choices: Meaning
    time_limit: float | None
    board: str | None
    firmware: str | None = None


@app.command("report")
def report_command(
    model: Model,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE.html", help="Write the page here.")
    ] = None,
    board_name: BoardName = None,
    firmware: Annotated[
        str | None,
        typer.Option("--firmware", metavar="DIR", help="What serenity build wrote: its time, too."),
    ] = None,
    time_limit: TimeLimit = None,
    alias_copies: Alias = False,
    fold_concat: Fold = False,
    in_place: InPlace = False,
    dim: Dims = None,
    signature: Signature = None,
    open_it: Annotated[
        bool,
        typer.Option("--open", help="Show it in the browser; without -o a temporary one."),
    ] = False,
    json: Json = False,
) -> None:
    """Write one HTML page about MODEL's memory: no network needed, all parts interactive.

    The network with its best order, live memory step by step for the given and the best order
    (of more than 5,000 operators, around the peaks), the arena, rewrites, off-chip traffic,
    boards, and what is proved; with --firmware milliseconds by operator. Each number is the one
    that schedule, rewrite, explain, offchip and latency print with --json.

    [dim]Examples[/dim]
      serenity report model.tflite --open
      serenity report model.tflite -o report.html
      serenity report zoo:swiftnet --board nucleo-f767zi -o report.html
    """
    if output is None and not json and not open_it:
        raise InputError("name the page: -o report.html (or --open, or print its numbers: --json)")
    if output is not None or open_it:
        chart_library()
    choices = meaning(alias_copies, fold_concat, in_place, None)
    show.warn_without_core()
    data = collect(Request(model, part(dim, signature), choices, time_limit, board_name, firmware))
    if output is None and open_it:
        output = str(Path(tempfile.mkdtemp(prefix="serenity-report-")) / "report.html")
    if output is not None:
        write_bytes(output, page(data).encode())
    if open_it and output is not None and not webbrowser.open(Path(output).resolve().as_uri()):
        print(f"serenity: no browser was found; the page is {output}", file=sys.stderr)
    if json:
        show.print_json(data)
    else:
        show.console.print(f"written to {output}")


def collect(request: Request) -> dict[str, Any]:
    """Return everything the page shows; orders and plans have passed the naive checkers."""
    target = None if request.board is None else board(request.board)
    opened = source(request.model, request.of)
    reduced = request.choices.apply(opened.file().graph)
    graph = reduced.graph
    with show.progress("reading channels"):
        channels = channel_claims(opened)
    with within(request.time_limit):
        with leaving(LEAST_PAGE_S + PAGE_S * len(graph.ops)):
            found = _searched(request, opened, graph, target)
        joint, rewritten = found.joint, found.rewritten
        given = order_json(graph, range(len(graph.ops)), *found.given)
        same = joint.plan is found.given[1]
        best = given if same else order_json(graph, joint.schedule.order, joint.ranges, joint.plan)
        drawn = graph_json(graph, sorted({*given["order"], *best["order"]}))
    claims = [*found.claims, *channels]
    check_schedule(graph, joint.schedule.order, joint.schedule.peak_bytes)
    check_plan(joint.plan.buffers, joint.plan.offsets)
    data = {
        "model": request.model,
        "version": __version__,
        "command": _command(request),
        "board": request.board,
        "choices": _choices(graph, joint.schedule, rewritten, found.tried),
        "schedule": schedule_json(request.model, request.choices, reduced, joint, found.given[1]),
        "explain": explain_json(request.model, graph, request.board, claims),
        "rewrite": rewrite_json(request.model, "all", rewritten, found.plans, False),
        "traffic": found.traffic,
        "traffic_options": _traffic_options(found.settings),
        "boards": found.boards,
        "latency": None if request.firmware is None else _latency(request.firmware),
        "weights": {"constant_bytes": graph.constant_bytes},
        "graph": drawn,
        "orders": {"given": given, "best": best},
    }
    return {**data, "proof": proof_json(data)}


@dataclass(frozen=True)
class _Found:
    """What was found until the deadline."""

    given: Placed
    joint: Joint
    rewritten: Rewritten | Unrewritten
    plans: Sequence[Plan]
    tried: Sequence[Measure | Claim]
    claims: Sequence[Claim]
    boards: Sequence[dict[str, Any]]
    settings: Sweep
    traffic: Sequence[dict[str, Any]]


def _searched(request: Request, opened: ModelSource, graph: Graph, target: Board | None) -> _Found:
    """Search, each part in its share of what is left of the time."""
    with within(None, 1 / 3), show.progress(f"ordering {len(graph.ops)} ops") as report:
        with within(None, 1 / 10):
            given = place_order(graph, None)
        joint = schedule_for_arena(graph, "auto", Options(progress=report), rounds=0, given=given)
        if not joint.plan.is_placed:  # late, but the page draws it, and boards must know
            found = joint.schedule
            ranges, plan = given if found.is_given else place_order(graph, found.order)
            joint = replace(joint, ranges=ranges, plan=plan)
    with within(None, 1 / 3), show.progress("rewriting"):
        rewritten = found_of(unread(opened), RewriteOptions())
        plans = placed(rewritten)
    with within(None, 1 / 2), show.progress("trying what would lower the peak"):
        tried = all_measures(graph, opened.file(), rewritten, request.time_limit)
    with within(None, 1 / 2), show.progress("placing on boards"):
        claims = claims_of(graph, joint.schedule, tried, target)
        boards = [fit_json(b, graph, joint.ranges, joint.plan) for b in _boards(target)]
    settings = settings_for(max(joint.schedule.peak_bytes, 1))
    with show.progress("measuring traffic"):
        points = points_of({request.model: versions_of(opened.file().graph, None)}, settings)
        traffic = run_points(points, is_keyed=False)
    return _Found(given, joint, rewritten, plans, tried, claims, boards, settings, traffic)


def _choices(
    graph: Graph,
    best: Schedule,
    rewritten: Rewritten | Unrewritten,
    tried: Sequence[Measure | Claim],
) -> list[dict[str, Any]]:
    """What ``serenity fit`` chooses between, as far as it is tried here: before and after."""
    ordered, after = (graph, best.order), rewritten.best
    listed = [
        choice_json("order", "schedule", (graph, range(len(graph.ops))), ordered, best),
        choice_json(
            "rewrite",
            "rewrite",
            (rewritten.given, rewritten.ordered.order),
            (rewritten.graph, after.order),
            after,
        ),
    ]
    for one in tried:
        if isinstance(one, Measure) and one.graph is not None:
            made = (one.graph, one.order)
            listed.append(choice_json(one.name, one.how, ordered, made, one))
    return listed


def _latency(directory: str) -> dict[str, Any]:
    """What latency prints of a project; :class:`InputError` where its board has no timing."""
    from tvm_serenity.cli.latency import as_json
    from tvm_serenity.firmware.latency import latency
    from tvm_serenity.firmware.result import load

    with show.progress(f"pricing {directory}"):
        return as_json(latency(load(directory)))


def _traffic_options(settings: Sweep) -> dict[str, Any]:
    model: Traffic = settings.model
    return {
        "memory": str(model.memory),
        "block_bytes": model.block_bytes,
        "policy": settings.policies[0],
        "capacities": list(settings.capacities),
    }


def _boards(target: Board | None) -> list[Board]:
    """All boards, smallest RAM first; the one asked for leads."""
    others = sorted((board(name) for name in names()), key=lambda b: (b.ram_bytes, b.name))
    if target is None:
        return others
    return [target, *(b for b in others if b.name != target.name)]


def _command(request: Request) -> str:
    words = ["serenity", "report", request.model]
    for option, value in request.choices.options().items():
        words += [f"--{option.replace('_', '-')}"] if value is True else []
    if request.board is not None:
        words += ["--board", request.board]
    if request.firmware is not None:
        words += ["--firmware", request.firmware]
    if request.time_limit is not None:
        words += ["--time-limit", f"{request.time_limit:g}"]
    return shlex.join(words)
