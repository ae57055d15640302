"""Compile a module as stock TVM does, in the given order, and in ours; run, compare, validate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_serenity.deadline import within
from tvm_serenity.graph import Graph
from tvm_serenity.kernels.workspace import workspace_of
from tvm_serenity.plan import Plan
from tvm_serenity.relax.pipeline import Planning, Prepared, pipeline_of, prepared
from tvm_serenity.relax.plan_memory import plan_graph
from tvm_serenity.relax.read import read_function
from tvm_serenity.relax.schedule import order_module
from tvm_serenity.runtime.checks import (
    Builds,
    Checks,
    ask_judge,
    check_plans,
    is_view,
    run_all,
    validated_kernels,
)
from tvm_serenity.runtime.vm import Run, compare
from tvm_serenity.schedule import Options, Schedule, schedule
from tvm_serenity.validation.drawn import network_inputs
from tvm_serenity.validation.kernels import Checked
from tvm_serenity.validation.network import Verdict

Notify = Callable[[str], None]
ORDER_SHARE = 0.5
"""Of the time that searches may still take: for the order, before its placement."""


@dataclass(frozen=True)
class MeasuredBuild:
    """One build and its execution: bytes the VM allocated, results apart."""

    name: str
    executable: relax.VMExecutable
    run: Run
    workspace_bytes: int

    @property
    def output_bytes(self) -> int:
        """Bytes of the results, which belong to the caller."""
        return sum(array.nbytes for array in self.run.outputs)

    @property
    def storage_bytes(self) -> int:
        """Bytes the VM allocated for everything but the results, measured."""
        return self.run.allocated_bytes - self.output_bytes


@dataclass(frozen=True, kw_only=True)
class CompileReport:
    """Everything ``serenity compile`` reports; the arena of ``given`` and ``ours`` is measured.

    ``ours`` has passed all checks; ``checked`` and ``verdict`` are None where they were left out.
    """

    graph: Graph
    schedule: Schedule
    given_plan: Plan
    plan: Plan
    stock: MeasuredBuild
    given: MeasuredBuild
    ours: MeasuredBuild
    kernels: tuple[str, ...] = field(repr=False)
    checked: Checked | None = None
    verdict: Verdict | None = None

    @property
    def order_executed(self) -> bool:
        """Whether the VM called the kernels in exactly the scheduled order."""
        return self.ours.run.kernels == self.kernels


def compile_and_compare(
    module: tvm.IRModule,
    made: Prepared | None = None,
    options: Options | None = None,
    *,
    inputs: Sequence[np.ndarray[Any, Any]] | None = None,
    seed: int = 0,
    checks: Checks | None = None,
    notify: Notify = lambda _text: None,
) -> CompileReport:
    """Return the three builds of ``module``, run on the same inputs.

    ``made``: what is ordered and placed, for its target; by default ``module`` as the pipeline
    prepares it. Stock TVM gets ``module``. Inputs default to seeded random ones. ``notify`` is
    told each step. Raises :class:`WrongResultError` where ``checks`` (by default those of kernels)
    find a wrong result; :class:`Verdict` says what the judge found, if there is one.
    """
    made, checks = made or prepared(module), checks or Checks()
    machine, lean = made.target, made.kernels
    inputs = network_inputs(module, seed) if inputs is None else inputs
    graph = read_function(lean).graph
    notify(f"ordering {len(graph.ops)} kernels")
    with within(None, ORDER_SHARE):
        found = schedule(graph, "auto", options or Options())
    notify("placing tensors")
    plans = plan_graph(graph)[1], plan_graph(graph, order=found.order)[1]
    check_plans(plans)
    pinned = order_module(lean, lambda _graph: found.order)
    built = {}
    for name, source, pipeline in (
        ("stock TVM", module, "default"),
        ("given order, one arena", lean, pipeline_of(planning=Planning(method="given"))),
        ("best order, one arena", pinned, pipeline_of(planning=Planning(method="given"))),
    ):
        notify(f"compiling: {name}")
        built[name] = tvm.compile(source, target=machine, relax_pipeline=pipeline)
    builds = Builds(module, made.plain, lean, machine, *built.values())
    checked = validated_kernels(builds, checks, seed, notify) if checks.kernels else None
    notify("running")
    runs = run_all(builds, checks, inputs, seed)
    expected = tuple(graph.ops[op].kind for op in found.order if not is_view(graph, op))
    runs.check(expected)
    verdict = None if checks.judge is None else ask_judge(checks.judge, runs, notify)
    scratch = largest_workspace(stock_kernels(module, machine))
    stock, given, ours = (
        MeasuredBuild(name, executable, execution, scratch if execution is runs.stock else 0)
        for (name, executable), execution in zip(
            built.items(), (runs.stock, runs.given[0], runs.ours[0]), strict=True
        )
    )
    given_plan, plan = plans
    return CompileReport(
        graph=graph,
        schedule=found,
        given_plan=given_plan,
        plan=plan,
        stock=stock,
        given=given,
        ours=ours,
        kernels=expected,
        checked=checked,
        verdict=verdict,
    )


def equal_outputs(left: MeasuredBuild, right: MeasuredBuild) -> dict[str, Any]:
    """Return whether two variants computed the same, bit for bit, and the largest difference."""
    return dict(compare(left.run.outputs, right.run.outputs))


def stock_kernels(module: tvm.IRModule, target: tvm.target.Target) -> Any:
    """Return the module with the kernels that ``tvm.compile`` makes by default: not fused."""
    with target:
        return relax.transform.LegalizeOps()(module)


def largest_workspace(module: tvm.IRModule) -> int:
    """Return the bytes the most demanding kernel allocates while it runs, at the least."""
    kernels = [f for _, f in module.functions.items() if isinstance(f, tvm.tirx.PrimFunc)]
    sizes = [workspace_of(kernel) for kernel in kernels]
    return max(sizes, default=0)
