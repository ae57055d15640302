"""Builds of a module in the given order and in ours: compiled, run, validated, compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.graph import Graph
from tvm_serenity.kernels.workspace import workspace_of
from tvm_serenity.plan import Plan
from tvm_serenity.relax.compiled import Built, built
from tvm_serenity.relax.pipeline import Planning, Prepared, planned, prepared
from tvm_serenity.relax.plan_memory import plan_graph
from tvm_serenity.relax.read import read_function
from tvm_serenity.relax.schedule import order_module
from tvm_serenity.runtime.checks import (
    Builds,
    Checks,
    check_plans,
    compare_with_runtime,
    is_view,
    run_all,
)
from tvm_serenity.runtime.vm import Run, compare
from tvm_serenity.schedule import Options, Schedule, schedule
from tvm_serenity.search.deadline import within
from tvm_serenity.validation.compiling import Modules, Validated, validated
from tvm_serenity.validation.network import Verdict
from tvm_serenity.validation.network_inputs import network_inputs

Notify = Callable[[str], None]
ORDER_SHARE = 0.5
"""Share of the remaining search time that the order gets; the placement gets the rest."""


@dataclass(frozen=True)
class MeasuredBuild:
    """One build and its execution, with the bytes that the VM allocated."""

    name: str
    built: Built
    run: Run

    @property
    def output_bytes(self) -> int:
        """Bytes of the results, which belong to the caller."""
        return sum(array.nbytes for array in self.run.outputs)

    @property
    def storage_bytes(self) -> int:
        """Measured bytes that the VM allocated for everything but the results."""
        return self.run.allocated_bytes - self.output_bytes


@dataclass(frozen=True)
class Stock:
    """The module as TVM compiles it by default: its memory, and its run if it was run.

    ``storage_bytes``: all storage but the results, planned by TVM, or measured if it ran.
    ``workspace_bytes``: the largest allocation of a kernel while it runs.
    """

    storage_bytes: int
    workspace_bytes: int
    run: Run | None = None


@dataclass(frozen=True, kw_only=True)
class CompileReport:
    """The report of ``serenity compile``; the arenas of ``given`` and ``ours`` are measured.

    ``ours`` has passed all checks. ``validated`` and ``verdict`` are None if that check was
    skipped.
    """

    graph: Graph
    schedule: Schedule
    given_plan: Plan
    plan: Plan
    stock: Stock
    given: MeasuredBuild
    ours: MeasuredBuild
    kernels: tuple[str, ...] = field(repr=False)
    validated: Validated | None = None
    verdict: Verdict | None = None

    @property
    def order_executed(self) -> bool:
        """Return whether the VM called the kernels in the scheduled order."""
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
    """Return the builds of ``module`` in the given order and in ours, run on the same inputs.

    ``made``: the module to order and place, prepared for its target; by default the pipeline
    prepares ``module``. Each distinct kernel is compiled once. The memory of stock TVM is planned
    from ``module``; ``checks.stock`` also compiles and runs it. Inputs default to seeded random
    arrays. ``notify`` receives a message at each step. Raises :class:`WrongResultError` if
    ``checks`` find a wrong result; by default they check the kernels. :class:`Verdict` compares the
    results with the reference runtime, if there is one.
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
    notify("compiling kernels")
    given, ours = (planned(m, Planning(method="given"), machine) for m in (lean, pinned))
    builds = Builds(
        module,
        made.plain,
        machine,
        built(given, machine, None, notify=notify),
        built(ours, machine, None, notify=notify),
        notify,
    )
    checked = None
    if checks.kernels:
        modules = Modules(made.plain, lean, ours)
        checked = validated(modules, machine, folder=checks.folder, seed=seed, notify=notify)
    notify("running")
    runs = run_all(builds, checks, inputs, seed)
    expected = tuple(graph.ops[op].kind for op in found.order if not is_view(graph, op))
    runs.check(expected)
    verdict = (
        None if checks.reference is None else compare_with_runtime(checks.reference, runs, notify)
    )
    given_plan, plan = plans
    return CompileReport(
        graph=graph,
        schedule=found,
        given_plan=given_plan,
        plan=plan,
        stock=stock_of(module, machine, runs.stock, runs.ours[0].outputs),
        given=MeasuredBuild("given order, one arena", builds.given, runs.given[0]),
        ours=MeasuredBuild("best order, one arena", builds.ours, runs.ours[0]),
        kernels=expected,
        validated=checked,
        verdict=verdict,
    )


def stock_of(
    module: tvm.IRModule,
    target: tvm.target.Target,
    ran: Run | None,
    outputs: Sequence[np.ndarray[Any, Any]],
) -> Stock:
    """Return the memory of stock TVM: measured if it ``ran``, otherwise as TVM plans it.

    ``outputs``: the network's results, whose bytes do not count.
    """
    scratch = largest_workspace(stock_kernels(module, target))
    if ran is None:
        sizes = compat.storage_sizes(compat.by_pipeline(module, target, "default")["main"])
        total = sum(size or 0 for size in sizes)
    else:
        total, outputs = ran.allocated_bytes, ran.outputs
    return Stock(total - sum(array.nbytes for array in outputs), scratch, ran)


def equal_outputs(left: Run, right: Run) -> dict[str, Any]:
    """Return whether two runs are bit-identical, and the largest difference."""
    return dict(compare(left.outputs, right.outputs))


def stock_kernels(module: tvm.IRModule, target: tvm.target.Target) -> Any:
    """Return the module with the unfused kernels that ``tvm.compile`` generates by default."""
    with target:
        return relax.transform.LegalizeOps()(module)


def largest_workspace(module: tvm.IRModule) -> int:
    """Return a lower bound of the bytes that a kernel allocates while it runs."""
    kernels = [f for _, f in module.functions.items() if isinstance(f, tvm.tirx.PrimFunc)]
    sizes = [workspace_of(kernel) for kernel in kernels]
    return max(sizes, default=0)
