"""``serenity schedule``: the order of least peak of a model file, with proof."""

from collections.abc import Mapping, Sequence
from typing import Any

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.onnx_session import print_session, said_of, say_what_to_copy
from tvm_serenity.cli.options import Model
from tvm_serenity.cli.program import NEXT, program_facts
from tvm_serenity.commands import program
from tvm_serenity.commands.onnx_session import SessionFile
from tvm_serenity.commands.schedule import Scheduled, given_peak, schedule
from tvm_serenity.commands.schedule_options import ScheduleOptions
from tvm_serenity.graph import Graph
from tvm_serenity.memory import peak_of
from tvm_serenity.options.output import Shown
from tvm_serenity.search.outcome import Outcome

NO_ORDER_HELPS = "no other order is better"
NONE_FOUND = "no better order was found, but one may exist (--method exact, a longer --time-limit)"
WHAT_HELPS = (
    "; --rewrite tries networks that compute the same in less, "
    "and serenity explain says what else would help"
)


@command("schedule")
def schedule_command(model: Model, options: ScheduleOptions, shown: Shown) -> None:
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
    show.warn_without_core()
    found = schedule(model, options, show.progress)
    if shown.json:
        show.print_json(found.json())
    elif isinstance(found, SessionFile):
        print_session(found)
    elif isinstance(found, Scheduled):
        _print(found)
    else:
        from tvm_serenity.cli.rewrite import print_rewriting

        print_rewriting(found)
    if not isinstance(found, SessionFile) and found.interrupted:
        show.end_interrupted("rewriting" if options.rewrite else "order")


def _print(run: Scheduled) -> None:
    model, opened, reduced = run.model, run.opened, run.reduced
    joint, given_plan, output = run.joint, run.given, run.options.output
    found, best_plan = joint.schedule, joint.plan
    before, after = given_peak(reduced.graph, joint), found.peak_bytes
    saved = f" ({1 - after / before:.1%} less)" if after < before else ""
    fixed = program.allocated(opened) is not None
    proved = found.outcome is Outcome.OPTIMAL
    helps = (NO_ORDER_HELPS if proved else NONE_FOUND) + WHAT_HELPS
    found_order = f"{'best' if after <= before else found.method} order"
    show.facts(
        f"{model}: {reduced.nodes} ops",
        {
            **program_facts(opened),
            "given order": f"peak {before:,} bytes, arena {show.arena_text(given_plan)}",
            found_order: f"peak {after:,} bytes{saved}, arena {show.arena_text(best_plan)}",
            "proof": f"{found.outcome}: no order needs less than {found.lower_bound_bytes:,} bytes",
            "peak at": _peak_text(reduced.graph, found.order),
            "search": f"{found.method}, {found.states:,} states, {found.seconds:.3f} s",
            **({"next": NEXT if fixed else helps} if fixed or after >= before else {}),
        },
    )
    if run.planned is not None:
        show.facts("TensorFlow Lite Micro", _plan_text(run.planned))
    if output is not None:
        show.console.print(f"written to {output}")
        say_what_to_copy(opened, output)
        if said := said_of(opened):
            show.plain(said)


def _peak_text(graph: Graph, order: Sequence[int]) -> str:
    """The op of the peak and the largest tensors in memory then."""
    if not order:
        return "-"
    peak = peak_of(graph, order)
    sizes = peak.sizes
    named = ", ".join(f"{peak.name(i)} {size:,}" for i, size in enumerate(sizes[:4].tolist()))
    more = f" and {len(sizes) - 4} more" if len(sizes) > 4 else ""
    return f"{graph.ops[peak.op].name}: {named}{more}"


def _plan_text(planned: Mapping[str, Any]) -> dict[str, str]:
    """Return the lines that the command prints of a plan."""
    scratch = planned["scratch"]
    unknown = scratch["unknown_kinds"]
    not_known = f"; not known for {', '.join(unknown)}" if unknown else ""
    return {
        "TFLM plan": f"{planned['planned']} tensors end at {planned['arena_bytes']:,} bytes "
        f"({planned['arena_outcome']}), aligned to {planned['alignment_bytes']}",
        "with scratch": f"{scratch['arena_bytes']:,} bytes with {scratch['kernels']} "
        f"(+{scratch['margin_bytes']:,}; estimate{not_known})",
    }
