"""``schedule``: find the operator order of least peak, with a proof."""

import json as json_module
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_serenity.commands import onnx_session, program
from tvm_serenity.commands.meaning import Meaning
from tvm_serenity.commands.models import source
from tvm_serenity.commands.progress import Progress, searching_s, silent
from tvm_serenity.commands.schedule_options import ARENA, ScheduleOptions
from tvm_serenity.errors import InputError
from tvm_serenity.frontends import format_at, format_of, save
from tvm_serenity.frontends.model_file import ModelFile
from tvm_serenity.graph import Graph
from tvm_serenity.graph.reduced import Reduced
from tvm_serenity.memory import peak_bytes
from tvm_serenity.plan import Plan, PlanOptions, check_plan
from tvm_serenity.plan.joint import ROUNDS, Joint, place_in_time, schedule_for_arena
from tvm_serenity.schedule import Options, check_schedule
from tvm_serenity.search.deadline import within
from tvm_serenity.search.outcome import Outcome
from tvm_serenity.system.files import write_bytes

if TYPE_CHECKING:
    from tvm_serenity.commands.rewrite import RewriteRun

GIVEN_SHARE = 0.1
"""Share of the search time for the placement of the given order."""


@dataclass(frozen=True)
class Scheduled:
    """The best order of a model with its placement, and the placement of the given order."""

    model: str
    options: ScheduleOptions
    opened: ModelFile
    reduced: Reduced
    joint: Joint
    given: Plan
    planned: Mapping[str, Any] | None

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search with the best so far."""
        return self.joint.interrupted or self.given.interrupted

    def json(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        return {
            **schedule_json(self.model, self.options, self.reduced, self.joint, self.given),
            "file_ops": len(self.opened.graph.ops),
            "objective": self.options.objective,
            "checked": self.options.check,
            **({} if self.planned is None else {"plan": self.planned}),
            **program.program_json(self.opened),
            "output": self.options.output,
        }


def schedule(
    model: str, options: ScheduleOptions | None = None, tell: Progress = silent
) -> "Scheduled | RewriteRun | onnx_session.SessionFile":
    """Return the order of least peak of a model, after writing the files of the options.

    With ``options.rewrite`` or ``options.runtime``, return the result of rewriting, or of the file
    that the runtime optimised. Raises :class:`InputError` if the model cannot be read, or cannot
    be written as requested.
    """
    options = options or ScheduleOptions()
    if options.rewrite:
        from tvm_serenity.commands.rewrite import rewrite, rewriting

        return rewrite(model, rewriting(options), tell)
    opened = source(model, options, options.opaque).file()
    _check_output(opened, options.output)
    if options.runtime is not None:
        return onnx_session.run_for(opened, _for_runtime(options), tell)
    if options.plan is not None:
        from tvm_serenity.commands import tflm

        tflm.check_file(opened)
    with within(searching_s(options.time_limit_s)):
        reduced = options.apply(opened.graph)
        with tell(f"ordering {len(reduced.graph.ops)} ops") as line:
            joint, given = _ordered(reduced.graph, options, line)
    if options.check:
        check_schedule(reduced.graph, joint.schedule.order, joint.schedule.peak_bytes)
        if joint.plan.is_placed:
            check_plan(joint.plan.buffers, joint.plan.offsets)
    planned = _written(opened, reduced, joint, options)
    return Scheduled(model, options, opened, reduced, joint, given, planned)


def _for_runtime(options: ScheduleOptions) -> onnx_session.Asked:
    limits = Options(
        time_limit_s=options.time_limit_s, memory_limit_bytes=options.memory_limit_bytes
    )
    assert options.runtime is not None
    assert options.output is not None
    output = Path(options.output)
    return onnx_session.Asked(
        options.runtime, output, options.dims, options.method, limits, options.check
    )


def _ordered(graph: Graph, options: ScheduleOptions, line: Any) -> tuple[Joint, Plan]:
    """Return the best order with its placement, and the placement of the given order."""
    with within(None, GIVEN_SHARE):
        keeping = PlanOptions(keep_on_interrupt=True)
        given = place_in_time(graph, None, options.align, keeping)
    search = Options(
        memory_limit_bytes=options.memory_limit_bytes, progress=line, keep_on_interrupt=True
    )
    rounds = ROUNDS if options.objective == ARENA else 0
    with within(0.0 if given[1].interrupted else None):
        joint = schedule_for_arena(
            graph, options.method, search, align=options.align, rounds=rounds, given=given
        )
    return joint, given[1]


def _written(
    opened: ModelFile, reduced: Reduced, joint: Joint, options: ScheduleOptions
) -> Mapping[str, Any] | None:
    """Return the plan for TFLM, if requested, after writing the certificate and the model."""
    order = options.file_order(reduced, joint.schedule.order)
    if options.certificate is not None:
        from tvm_serenity.schedule.certificate import certificate

        claims = {**certificate(reduced.graph, joint.schedule), "options": options.choices()}
        write_bytes(options.certificate, json_module.dumps(claims, indent=1).encode())
    if options.plan is not None:
        from tvm_serenity.commands import tflm

        return tflm.plan_file(opened, order, options.output, options.time_limit_s)
    if options.output is not None:
        save(opened, _file_order(opened.graph, options, order), options.output)
    return None


def _check_output(opened: ModelFile, output: str | None) -> None:
    """Raise :class:`InputError` if the suffix of ``output`` names another format, or if the format
    of the model cannot be written.
    """
    form = format_of(opened)
    if output is None or form is None:
        return
    if format_at(output) not in (None, form):
        same, suffix = " or ".join(form.suffixes), Path(output).suffix.lower()
        raise InputError(f"{output}: {suffix} does not match the model; name a {same} file")
    if not form.written:
        opened.reordered(range(len(opened.graph.ops)))  # raises the reason before the search


def schedule_json(
    model: str, choices: Meaning, reduced: Reduced, joint: Joint, given_plan: Plan
) -> dict[str, Any]:
    """Return the given and the best order of a model as ``--json`` prints them."""
    order = choices.file_order(reduced, joint.schedule.order)
    return {
        "model": model,
        "ops": reduced.nodes,
        "options": choices.choices(),
        "state_bytes": reduced.graph.state_bytes,
        "given": {
            "peak_bytes": given_peak(reduced.graph, joint),
            "arena_bytes": given_plan.placed_bytes,
        },
        "schedule": _schedule_json(joint, order),
    }


def given_peak(graph: Graph, joint: Joint) -> int:
    """Return the peak of the given order in bytes, from the search if it recorded the peak."""
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
        "arena_bytes": placed.placed_bytes,
        "arena_lower_bound_bytes": placed.lower_bound_bytes,
        "arena_outcome": str(placed.outcome),
        "arena_proof": _arena_proof(joint),
        "order": list(order),
        "states": found.states,
        "seconds": found.seconds,
        "statistics": dict(found.statistics),
    }


def _arena_proof(joint: Joint) -> str:
    """Return the proof about the arena, as text."""
    if not joint.plan.is_placed:
        return "none: this order was not placed"
    if joint.outcome is Outcome.OPTIMAL:
        return "optimal: the arena equals the bound that holds for every order"
    if joint.fragmentation_bytes == 0:
        return "no fragmentation: the arena equals this order's peak"
    return f"{joint.fragmentation_bytes} bytes above this order's peak"


def _file_order(graph: Graph, choices: Meaning, order: tuple[int, ...]) -> list[int]:
    """Return the order of all operators of the file, with the slice reordered in its place."""
    if choices.slice is None:
        return list(order)
    first, last = choices.slice
    if len(order) != last - first + 1:
        raise InputError("--slice: the order of the slice lacks operators that the options merged")
    return [*range(first), *order, *range(last + 1, len(graph.ops))]
