"""``serenity schedule``: find the operator order of least peak, with a proof."""

from collections.abc import Mapping, Sequence
from typing import Any

from tvm_serenity.cli import show
from tvm_serenity.cli.derive import command
from tvm_serenity.cli.onnx_session import order_note, print_external_files, print_session
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

NO_BETTER_ORDER = "no other order is better"
BETTER_ORDER_UNKNOWN = (
    "the search found no better order, but one may exist (--method exact, longer --time-limit)"
)
OTHER_MEASURES = (
    "; --rewrite tries equivalent networks of lower peak, and serenity explain lists other measures"
)


@command("schedule")
def schedule_command(model: Model, options: ScheduleOptions, shown: Shown) -> None:
    """Order the operators of MODEL for the least peak memory.

    Prints the peak and the arena of the given order and of the best order, and the proved lower
    bound of every order. With -o, writes the model in the new order and changes nothing else in the
    file.

    [dim]Examples[/dim]
      serenity schedule model.tflite -o model-reordered.tflite
      serenity schedule model.tflite -o model-tflm.tflite --plan tflm
      serenity schedule model.onnx -o ordered.onnx --for onnxruntime
      serenity schedule zoo:randwire?n=64 --json
    """
    show.warn_without_core()
    result = schedule(model, options, show.progress)
    if shown.json:
        show.print_json(result.json())
    elif isinstance(result, SessionFile):
        print_session(result)
    elif isinstance(result, Scheduled):
        _print(result)
    else:
        from tvm_serenity.cli.rewrite import print_rewriting

        print_rewriting(result)
    if not isinstance(result, SessionFile) and result.interrupted:
        show.end_interrupted("rewriting" if options.rewrite else "order")


def _print(run: Scheduled) -> None:
    model, opened, reduced = run.model, run.opened, run.reduced
    joint, given_plan, output = run.joint, run.given, run.options.output
    best, plan = joint.schedule, joint.plan
    before, after = given_peak(reduced.graph, joint), best.peak_bytes
    saved = f" ({1 - after / before:.1%} less)" if after < before else ""
    fixed = program.allocated(opened) is not None
    proved = best.outcome is Outcome.OPTIMAL
    advice = (NO_BETTER_ORDER if proved else BETTER_ORDER_UNKNOWN) + OTHER_MEASURES
    label = f"{'best' if after <= before else best.method} order"
    show.facts(
        f"{model}: {reduced.nodes} ops",
        {
            **program_facts(opened),
            "given order": f"peak {before:,} bytes, arena {show.arena_text(given_plan)}",
            label: f"peak {after:,} bytes{saved}, arena {show.arena_text(plan)}",
            "proof": f"{best.outcome}: no order needs less than {best.lower_bound_bytes:,} bytes",
            "peak at": _peak_text(reduced.graph, best.order),
            "search": f"{best.method}, {best.states:,} states, {best.seconds:.3f} s",
            **({"next": NEXT if fixed else advice} if fixed or after >= before else {}),
        },
    )
    if run.planned is not None:
        show.facts("TensorFlow Lite Micro", _plan_text(run.planned))
    if output is not None:
        show.console.print(f"written to {output}")
        print_external_files(opened, output)
        if note := order_note(opened):
            show.plain(note)


def _peak_text(graph: Graph, order: Sequence[int]) -> str:
    """Return the operator at the peak and the largest tensors that are live there."""
    if not order:
        return "-"
    peak = peak_of(graph, order)
    sizes = peak.sizes
    named = ", ".join(f"{peak.name(i)} {size:,}" for i, size in enumerate(sizes[:4].tolist()))
    more = f" and {len(sizes) - 4} more" if len(sizes) > 4 else ""
    return f"{graph.ops[peak.op].name}: {named}{more}"


def _plan_text(planned: Mapping[str, Any]) -> dict[str, str]:
    """Return the facts of a plan for TensorFlow Lite Micro."""
    scratch = planned["scratch"]
    unknown = scratch["unknown_kinds"]
    not_known = f"; unknown for {', '.join(unknown)}" if unknown else ""
    return {
        "TFLM plan": f"{planned['planned']} tensors end at {planned['arena_bytes']:,} bytes "
        f"({planned['arena_outcome']}), aligned to {planned['alignment_bytes']}",
        "with scratch": f"{scratch['arena_bytes']:,} bytes with {scratch['kernels']} "
        f"(+{scratch['margin_bytes']:,}; estimate{not_known})",
    }
