"""``report``: one self-contained HTML page about the memory of a model."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tvm_serenity import __version__
from tvm_serenity.boards import Board, board, names
from tvm_serenity.commands.best_build import BoardOptions, Question, question
from tvm_serenity.commands.explain import (
    all_measures,
    channel_claims,
    claims_of,
    explain_json,
)
from tvm_serenity.commands.meaning import Meaning
from tvm_serenity.commands.models import ModelSource, source
from tvm_serenity.commands.offchip import versions_of
from tvm_serenity.commands.progress import Progress, silent
from tvm_serenity.commands.rewrite import placed, rewrite_input, rewrite_json, rewritten_or_ordered
from tvm_serenity.commands.schedule import schedule_json
from tvm_serenity.commands.sliding import moved
from tvm_serenity.explain.claims import Claim
from tvm_serenity.explain.fit import fit_json
from tvm_serenity.explain.measures import Measure
from tvm_serenity.explain.rows import HOW, FinestBands, finest_bands
from tvm_serenity.graph import Graph
from tvm_serenity.offchip import Model as Traffic
from tvm_serenity.offchip import Sweep, points_of, run_points
from tvm_serenity.options.option import HelpGroup, Option, differing, option, values_of
from tvm_serenity.options.output import OUTPUT
from tvm_serenity.options.rows import SLIDING
from tvm_serenity.plan import Plan, check_plan
from tvm_serenity.plan.joint import Joint, Placed, place_order, schedule_for_arena
from tvm_serenity.quantize.choices import OFF
from tvm_serenity.report.choices import choice_json
from tvm_serenity.report.page import page
from tvm_serenity.report.proof import proof_json
from tvm_serenity.report.retained import retained_json
from tvm_serenity.report.shapes import graph_json, order_json
from tvm_serenity.report.traffic import settings_for
from tvm_serenity.rewrite import RewriteOptions, Rewritten, Unrewritten
from tvm_serenity.rows.limits import Limits
from tvm_serenity.schedule import Options, Schedule, check_schedule
from tvm_serenity.search.deadline import leaving, within
from tvm_serenity.system.files import write_bytes

PAGE_S, LEAST_PAGE_S = 4e-5, 0.1
"""Seconds per operator for checks and page, which the time limit cannot shorten; and the minimum
for any page."""


@dataclass(frozen=True, kw_only=True)
class ReportOptions(BoardOptions):
    """The options of ``report``.

    ``output``: the file of the page. ``firmware``: a project whose latency is shown. ``sliding``:
    also show the retained rows of a window that moves by this many rows.
    """

    output: str | None = option(
        None, differing(OUTPUT, metavar="FILE.html", help="Write the page here.")
    )
    firmware: str | None = option(
        None,
        Option(
            flag="--firmware",
            help="Also show the latency of this project of serenity build.",
            group=HelpGroup.MODEL,
            metavar="DIR",
        ),
    )
    sliding: int | None = option(
        None,
        differing(
            SLIDING,
            help="Also show the rows that are retained when the input window moves by N rows.",
        ),
    )

    @property
    def meaning(self) -> Meaning:
        """The memory semantics of the graph."""
        return Meaning(**values_of(self, Meaning))


@dataclass(frozen=True)
class Request:
    """The model and options of a report, and the receiver of its progress."""

    model: str
    options: ReportOptions
    tell: Progress = silent


def report(
    model: str, options: ReportOptions | None = None, tell: Progress = silent
) -> dict[str, Any]:
    """Return the data of the page, after writing the page to ``options.output``.

    The naive checkers verify all orders and plans.
    """
    options = options or ReportOptions()
    data = collect(Request(model, options, tell))
    if options.output is not None:
        write_bytes(options.output, page(data).encode())
    return data


def collect(request: Request) -> dict[str, Any]:
    """Return the data of the page; the naive checkers verify all orders and plans."""
    spec = request.options.target
    target = None if spec is None else board(spec)
    opened = source(request.model, request.options)
    reduced = request.options.meaning.apply(opened.file().graph)
    graph = reduced.graph
    with request.tell("reading channels"):
        channels = channel_claims(opened)
    with within(request.options.time_limit_s):
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
    choices = _choices(graph, joint.schedule, rewritten, found.tried)
    data = {
        "model": request.model,
        "version": __version__,
        "command": _command(request),
        "board": spec,
        "choices": choices,
        "retained": found.retained,
        "shown_choice": _shown_choice(found.asked, choices),
        "ram_and_time": _ram_and_time(found.asked, joint.schedule, found.tried),
        "schedule": schedule_json(
            request.model, request.options.meaning, reduced, joint, found.given[1]
        ),
        "explain": explain_json(request.model, graph, spec, claims),
        "rewrite": rewrite_json(request.model, "all", rewritten, found.plans, False),
        "traffic": found.traffic,
        "traffic_options": _traffic_options(found.settings),
        "boards": found.boards,
        "latency": None if request.options.firmware is None else _latency(request),
        "weights": {"constant_bytes": graph.constant_bytes},
        "graph": drawn,
        "orders": {"given": given, "best": best},
    }
    return {**data, "proof": proof_json(data)}


@dataclass(frozen=True)
class _Searches:
    """The results of all searches at the deadline."""

    given: Placed
    joint: Joint
    rewritten: Rewritten | Unrewritten
    plans: Sequence[Plan]
    tried: Sequence[Measure | Claim]
    asked: Question
    claims: Sequence[Claim]
    boards: Sequence[dict[str, Any]]
    settings: Sweep
    traffic: Sequence[dict[str, Any]]
    retained: Sequence[dict[str, Any]]


def _searched(
    request: Request, opened: ModelSource, graph: Graph, target: Board | None
) -> _Searches:
    """Return the results of all searches; each takes a share of the remaining time."""
    with within(None, 1 / 3), request.tell(f"ordering {len(graph.ops)} ops") as report:
        with within(None, 1 / 10):
            given = place_order(graph, None)
        joint = schedule_for_arena(graph, "auto", Options(progress=report), rounds=0, given=given)
        if not joint.plan.is_placed:  # although late: the page and the boards need it
            found = joint.schedule
            ranges, plan = given if found.is_given else place_order(graph, found.order)
            joint = replace(joint, ranges=ranges, plan=plan)
    with within(None, 1 / 3), request.tell("rewriting"):
        rewritten = rewritten_or_ordered(rewrite_input(opened), RewriteOptions())
        plans = placed(rewritten)
    with within(None, 1 / 2), request.tell("trying measures against the peak"):
        bands = finest_bands(opened.file(), request.options.time_limit_s)
        tried = all_measures(graph, bands, rewritten, request.options.time_limit_s)
        retained = _retained(request, opened, bands)
    with within(None, 1 / 2):
        asked = question(opened, request.options, target, request.tell)
    with within(None, 1 / 2), request.tell("placing on boards"):
        claims = claims_of(asked, graph, joint.schedule, tried)
        least = min((m.peak_bytes for m in tried if isinstance(m, Measure)), default=0)
        boards = [
            _on_board(fit_json(b, graph, joint.ranges, joint.plan), least, asked)
            for b in _boards(target)
        ]
    settings = settings_for(max(joint.schedule.peak_bytes, 1))
    with request.tell("measuring traffic"):
        points = points_of({request.model: versions_of(opened.file().graph, None)}, settings)
        traffic = run_points(points, is_keyed=False)
    return _Searches(
        given, joint, rewritten, plans, tried, asked, claims, boards, settings, traffic, retained
    )


def _retained(
    request: Request, opened: ModelSource, bands: FinestBands | Claim
) -> list[dict[str, Any]]:
    """Return the rows that bands of one row and the wanted moving window retain, as JSON."""
    found, step = [], request.options.sliding
    if not isinstance(bands, Claim):
        banded, best = bands.least
        found.append(retained_json("rows", HOW, banded, best.order))
    if step is not None:
        from tvm_serenity.sliding import sliding_step

        opened.check_operators()
        limits = Limits.within(request.options.time_limit_s)
        made = sliding_step(moved(opened, step)[1].steady(), limits)
        run, command = made.streaming, f"rows --sliding {step}"
        kept = made.steady.feature_bytes
        found.append(retained_json("sliding", command, run.banded, run.schedule.order, kept))
    return found


def _on_board(alone: dict[str, Any], least_bytes: int, asked: Question) -> dict[str, Any]:
    """Return the fit of the order alone, with what more than the order may reach.

    ``best_fits``: the best build fits this board; null where it was not searched. ``may_fit``: the
    least peak of all measures fits its memory, and the weights its flash.
    """
    room = least_bytes <= alone["largest_room_bytes"] and alone["flash_spare_bytes"] > 0
    searched = asked.board is not None and asked.board.name == alone["board"]
    best = asked.best if searched and not isinstance(asked.best, Claim) else None
    return {**alone, "best_fits": None if best is None else best["fits"], "may_fit": room}


def _ram_and_time(asked: Question, best: Schedule, tried: Sequence[Measure | Claim]) -> Any:
    """Return RAM and time of the answer, and of what stands beside it, as JSON."""
    found = asked.best
    if found is not None and not isinstance(found, Claim):
        builds = [found["build"], *found["alternatives"]]
        in_ms = found["build"]["milliseconds"] is not None
        points = [
            _point(
                b["strategy"], b["ram_bytes"], b["milliseconds"][1] if in_ms else b["instructions"]
            )
            for b in builds
            if not in_ms or b["milliseconds"] is not None
        ]
        return {"unit": "ms" if in_ms else "instructions", "points": points}
    measures = [m for m in tried if isinstance(m, Measure) and m.peak_bytes < best.peak_bytes]
    points = [_point("order alone", best.peak_bytes, len(best.order))]
    points += [_point(m.words, m.peak_bytes, m.ops) for m in measures]
    return {"unit": "kernel calls", "points": sorted(points, key=lambda p: p["ram_bytes"])}


def _point(name: str, ram_bytes: int, time: float | None) -> dict[str, Any]:
    return {"name": name, "ram_bytes": ram_bytes, "time": time}


def _shown_choice(asked: Question, listed: Sequence[Mapping[str, Any]]) -> str:
    """Return the name of the choice that the page shows first: that of the answer.

    This is bands of rows or rewriting if the best build uses them; without a build, the choice with
    the lowest peak.
    """
    names = [str(one["name"]) for one in listed]
    found = asked.best
    if found is not None and not isinstance(found, Claim):
        build = found["build"]
        if build["rows"] != OFF and "rows" in names:
            return "rows"
        return "rewrite" if build["rewrite"] else "order"
    return min(zip(names, listed, strict=True), key=lambda pair: pair[1]["after"]["peak_bytes"])[0]


def _choices(
    graph: Graph,
    best: Schedule,
    rewritten: Rewritten | Unrewritten,
    tried: Sequence[Measure | Claim],
) -> list[dict[str, Any]]:
    """Return the graph and the order before and after each measure, as JSON."""
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


def _latency(request: Request) -> dict[str, Any]:
    """Return the latency of a project; raise :class:`InputError` without a timing model."""
    from tvm_serenity.commands.latency import as_json
    from tvm_serenity.firmware.board.latency import latency
    from tvm_serenity.firmware.result import load

    directory = str(request.options.firmware)
    with request.tell(f"pricing {directory}"):
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
    """Return all boards by RAM, ascending; ``target`` comes first."""
    others = sorted((board(name) for name in names()), key=lambda b: (b.ram_bytes, b.name))
    if target is None:
        return others
    return [target, *(b for b in others if b.name != target.name)]


def _command(request: Request) -> str:
    words = ["serenity", "report", request.model]
    for name, value in request.options.meaning.choices().items():
        words += [f"--{name.replace('_', '-')}"] if value is True else []
    if request.options.target is not None:
        words += ["--board", request.options.target]
    if request.options.firmware is not None:
        words += ["--firmware", request.options.firmware]
    if request.options.sliding is not None:
        words += ["--sliding", str(request.options.sliding)]
    if request.options.time_limit_s is not None:
        words += ["--time-limit", f"{request.options.time_limit_s:g}"]
    return shlex.join(words)
