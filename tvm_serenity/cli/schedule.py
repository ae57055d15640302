"""``serenity schedule``: the order of least peak of a model file, with proof."""

import json as json_module
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tvm_serenity.arena import ROUNDS, Joint, place_in_time, schedule_for_arena
from tvm_serenity.cli import app, onnx_session, program, show
from tvm_serenity.cli.models import Part, part, source
from tvm_serenity.cli.options import (
    SEARCH_SHARE,
    Alias,
    Dims,
    Fold,
    InPlace,
    Json,
    MemoryLimit,
    Model,
    Opaque,
    Rewrite,
    Signature,
    Slice,
    TimeLimit,
    sized,
)
from tvm_serenity.cli.reduce import Meaning, meaning
from tvm_serenity.deadline import within
from tvm_serenity.errors import InputError
from tvm_serenity.files import write_bytes
from tvm_serenity.frontends import READERS, save
from tvm_serenity.frontends.model_file import ModelFile
from tvm_serenity.frontends.text_file import TextFile
from tvm_serenity.graph import Graph
from tvm_serenity.memory import peak_bytes, peak_of
from tvm_serenity.outcome import Outcome
from tvm_serenity.plan import Plan, PlanOptions, check_plan
from tvm_serenity.schedule import METHODS, Options, check_schedule
from tvm_serenity.transform import Reduced

OBJECTIVES = ("peak", "arena")
GIVEN_SHARE = 0.1
"""Of the time for all searches: for the placement of the given order."""
NO_ORDER_HELPS = "no other order is better"
NONE_FOUND = "no better order was found, but one may exist (--method exact, a longer --time-limit)"
WHAT_HELPS = (
    "; --rewrite tries networks that compute the same in less, "
    "and serenity explain says what else would help"
)


@app.command("schedule")
def schedule_command(
    model: Model,
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="Write the reordered model here.")
    ] = None,
    method: Annotated[str, typer.Option(help=f"One of: {', '.join(METHODS)}.")] = "auto",
    time_limit: TimeLimit = None,
    alias_copies: Alias = False,
    fold_concat: Fold = False,
    in_place: InPlace = False,
    slice_text: Slice = None,
    objective: Annotated[
        str, typer.Option(help="Least of: peak, or arena (order and placement together).")
    ] = "peak",
    memory_limit: MemoryLimit = None,
    proof_file: Annotated[
        str | None,
        typer.Option(
            "--certificate", metavar="FILE.json", help="Write what 'serenity check' verifies."
        ),
    ] = None,
    rewrite: Rewrite = False,
    rules: Annotated[
        str, typer.Option("--rules", help="With --rewrite: all, paper, or names of rules.")
    ] = "all",
    align: Annotated[int, sized("Alignment of every tensor in the arena.")] = 1,
    plan_for: Annotated[
        str | None,
        typer.Option("--plan", metavar="tflm", help="With -o: TFLM's offline plan in the file."),
    ] = None,
    runtime: Annotated[
        str | None,
        typer.Option("--for", metavar="onnxruntime[-all]", help="With -o: what it runs in order."),
    ] = None,
    dim: Dims = None,
    signature: Signature = None,
    opaque: Opaque = None,
    json: Json = False,
    check: Annotated[
        bool, typer.Option("--check", help="Verify order and plan by the naive checkers.")
    ] = False,
) -> None:
    """Order the operators of MODEL for the least peak memory.

    Prints the peak of the given order, the best order's, the bound proved for every order, and
    the arena that holds the tensors under each. With -o, writes the model in the new order; all
    else in the file stays.

    [dim]Examples[/dim]
      serenity schedule model.tflite -o model-reordered.tflite
      serenity schedule model.tflite -o model-tflm.tflite --plan tflm
      serenity schedule model.onnx -o ordered.onnx --for onnxruntime
      serenity schedule zoo:randwire?n=64 --json
    """
    choices = meaning(alias_copies, fold_concat, in_place, slice_text)
    if rewrite and runtime is not None:
        raise InputError("a file cannot hold rewritten ops: --for goes without --rewrite")
    if rewrite:
        _rewrite(
            model, part(dim, signature), rules, time_limit, json, check, align, choices, output
        )
        return
    if objective not in OBJECTIVES:
        raise InputError(f"unknown objective {objective!r}; there are {', '.join(OBJECTIVES)}")
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}; there are {', '.join(METHODS)}")
    opened = source(model, part(dim, signature), opaque or ()).file()
    _check_suffix(opened, output)
    if output is not None and program.allocated(opened) is not None:
        opened.reordered(range(len(opened.graph.ops)))  # refused before the search
    if runtime is not None:
        limits = Options(time_limit_s=time_limit, memory_limit_bytes=memory_limit)
        others = {
            "--plan": plan_for,
            "--certificate": proof_file,
            "--opaque": opaque,
            "--objective": objective != "peak",
            "--align": align != 1,
            "--alias-copies, --fold-concat, --in-place, --slice": choices != Meaning(),
        }
        named = tuple(name for name, value in others.items() if value)
        asked = onnx_session.Asked(output, method, limits, check, json, named)
        onnx_session.run_for(runtime, opened, source(model, part(dim, signature)).dims, asked)
        return
    if plan_for is not None:
        from tvm_serenity.cli import tflm

        tflm.check_request(plan_for, opened, choices)
    show.warn_without_core()
    with within(None if time_limit is None else SEARCH_SHARE * time_limit):
        reduced = choices.apply(opened.graph)
        with show.progress(f"ordering {len(reduced.graph.ops)} ops") as report:
            with within(None, GIVEN_SHARE):
                keeping = PlanOptions(keep_on_interrupt=True)
                given = place_in_time(reduced.graph, None, align, keeping)
            options = Options(
                memory_limit_bytes=memory_limit, progress=report, keep_on_interrupt=True
            )
            rounds = ROUNDS if objective == "arena" else 0
            with within(0.0 if given[1].interrupted else None):
                joint = schedule_for_arena(
                    reduced.graph, method, options, align=align, rounds=rounds, given=given
                )
    found, best_plan, given_plan = joint.schedule, joint.plan, given[1]
    if check:
        check_schedule(reduced.graph, found.order, found.peak_bytes)
        if best_plan.is_placed:
            check_plan(best_plan.buffers, best_plan.offsets)
    order = choices.file_order(reduced, found.order)
    if proof_file is not None:
        from tvm_serenity.schedule.certificate import certificate

        claims = {**certificate(reduced.graph, found), "options": choices.options()}
        write_bytes(proof_file, json_module.dumps(claims, indent=1).encode())
    planned = None
    if plan_for is not None:
        planned = tflm.plan_file(opened, order, output, time_limit)
    elif output is not None:
        save(opened, _whole_order(opened.graph, choices, order), output)
    if json:
        show.print_json(
            {
                **schedule_json(model, choices, reduced, joint, given_plan),
                "file_ops": len(opened.graph.ops),
                "objective": objective,
                "checked": check,
                **({} if planned is None else {"plan": planned}),
                **program.program_json(opened),
                "output": output,
            }
        )
    else:
        _print(model, opened, reduced, joint, given_plan)
        if planned is not None:
            show.facts("TensorFlow Lite Micro", tflm.plan_text(planned))
        if output is not None:
            show.console.print(f"written to {output}")
            onnx_session.say_what_to_copy(opened, output)
            if said := onnx_session.said_of(opened):
                show.plain(said)
    if joint.interrupted or given_plan.interrupted:
        show.end_interrupted("order")


def _rewrite(
    model: str,
    of: Part,
    rules: str,
    time_limit: float | None,
    json: bool,
    check: bool,
    align: int,
    choices: Meaning,
    output: str | None,
) -> None:
    if output is not None:
        raise InputError("a file cannot hold rewritten ops: leave out -o, or use compile --rewrite")
    if choices != Meaning():
        raise InputError("--rewrite chooses copies, concats and in place by its --rules itself")
    from tvm_serenity.cli.rewrite import run_rewrite

    run_rewrite(model, of, rules, time_limit, json=json, check=check, align=align)


def _check_suffix(opened: ModelFile, output: str | None) -> None:
    """Refuse to write one format under another one's name."""
    is_text = isinstance(opened, TextFile)
    same = (".txt", ".graph") if is_text else (opened.path.suffix.lower(),)
    suffix = "" if output is None else Path(output).suffix.lower()
    if suffix in READERS and suffix not in same:
        raise InputError(f"{output}: the model is written as {' or '.join(same)}, not {suffix}")


def schedule_json(
    model: str, choices: Meaning, reduced: Reduced, joint: Joint, given_plan: Plan
) -> dict[str, Any]:
    """Return what JSON says of a model's given order and of the best one found."""
    order = choices.file_order(reduced, joint.schedule.order)
    return {
        "model": model,
        "ops": reduced.nodes,
        "options": choices.options(),
        "state_bytes": reduced.graph.state_bytes,
        "given": {
            "peak_bytes": _given_peak(reduced.graph, joint),
            "arena_bytes": show.placed_bytes(given_plan),
        },
        "schedule": _schedule_json(joint, order),
    }


def _given_peak(graph: Graph, joint: Joint) -> int:
    """The peak of the given order, as the search began with it where it tells."""
    known = joint.schedule.statistics.get("given_peak_bytes")
    if isinstance(known, int):
        return known
    return joint.schedule.peak_bytes if joint.schedule.is_given else peak_bytes(graph)


def _schedule_json(joint: Joint, order: tuple[int, ...]) -> dict[str, object]:
    found, placed = joint.schedule, joint.plan
    return {
        "method": found.method,
        "peak_bytes": found.peak_bytes,
        "lower_bound_bytes": found.lower_bound_bytes,
        "outcome": str(found.outcome),
        "arena_bytes": show.placed_bytes(placed),
        "arena_lower_bound_bytes": placed.lower_bound_bytes,
        "arena_outcome": str(placed.outcome),
        "arena_proof": _arena_proof(joint),
        "order": list(order),
        "states": found.states,
        "seconds": found.seconds,
        "statistics": dict(found.statistics),
    }


def _arena_proof(joint: Joint) -> str:
    """What is proved about the arena of all orders."""
    if not joint.plan.is_placed:
        return "none: this order was not placed"
    if joint.outcome is Outcome.OPTIMAL:
        return "optimal: the arena equals the bound that holds for every order"
    if joint.fragmentation_bytes == 0:
        return "no fragmentation: the arena equals this order's peak"
    return f"{joint.fragmentation_bytes} bytes above this order's peak"


def _whole_order(graph: Graph, choices: Meaning, order: tuple[int, ...]) -> list[int]:
    """The order of all the file's ops in which a slice is reordered where it stands."""
    if choices.first is None or choices.last is None:
        return list(order)
    if len(order) != choices.last - choices.first + 1:
        raise InputError("the slice's order does not hold all of its ops")
    return [*range(choices.first), *order, *range(choices.last + 1, len(graph.ops))]


def _print(model: str, opened: ModelFile, reduced: Reduced, joint: Joint, given_plan: Plan) -> None:
    found, best_plan = joint.schedule, joint.plan
    before, after = _given_peak(reduced.graph, joint), found.peak_bytes
    saved = f" ({1 - after / before:.1%} less)" if after < before else ""
    fixed = program.allocated(opened) is not None
    proved = found.outcome is Outcome.OPTIMAL
    helps = (NO_ORDER_HELPS if proved else NONE_FOUND) + WHAT_HELPS
    found_order = f"{'best' if after <= before else found.method} order"
    show.facts(
        f"{model}: {reduced.nodes} ops",
        {
            **program.program_facts(opened),
            "given order": f"peak {before:,} bytes, arena {show.arena_text(given_plan)}",
            found_order: f"peak {after:,} bytes{saved}, arena {show.arena_text(best_plan)}",
            "proof": f"{found.outcome}: no order needs less than {found.lower_bound_bytes:,} bytes",
            "peak at": _peak_text(reduced.graph, found.order),
            "search": f"{found.method}, {found.states:,} states, {found.seconds:.3f} s",
            **({"next": program.NEXT if fixed else helps} if fixed or after >= before else {}),
        },
    )


def _peak_text(graph: Graph, order: Sequence[int]) -> str:
    """The op of the peak and the largest tensors in memory then."""
    if not order:
        return "-"
    peak = peak_of(graph, order)
    sizes = peak.sizes
    named = ", ".join(f"{peak.name(i)} {size:,}" for i, size in enumerate(sizes[:4].tolist()))
    more = f" and {len(sizes) - 4} more" if len(sizes) > 4 else ""
    return f"{graph.ops[peak.op].name}: {named}{more}"
