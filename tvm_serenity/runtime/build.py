"""Compile a module as stock TVM does, in the given order, and in ours; run all three; compare."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_serenity.graph import Graph
from tvm_serenity.kernels.tile import tiling_for
from tvm_serenity.passes.relax.kernels import workspace_of
from tvm_serenity.passes.relax.lean_kernels import LeanKernels
from tvm_serenity.passes.relax.pipeline import serenity_pipeline
from tvm_serenity.passes.relax.plan_memory import plan_graph
from tvm_serenity.passes.relax.read import read_function
from tvm_serenity.passes.relax.schedule import order_module
from tvm_serenity.plan import Plan
from tvm_serenity.runtime.vm import Run, compare, random_inputs, run
from tvm_serenity.schedule import Options, Schedule, schedule

Notify = Callable[[str], None]


@dataclass(frozen=True)
class Variant:
    """One build and its execution: bytes the VM allocated, results apart."""

    name: str
    executable: Any
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


@dataclass(frozen=True)
class Comparison:
    """Everything ``serenity compile`` reports; the arena of ``given`` and ``ours`` is measured."""

    graph: Graph
    schedule: Schedule
    given_plan: Plan
    plan: Plan
    stock: Variant
    given: Variant
    ours: Variant
    kernels: tuple[str, ...] = field(repr=False)

    @property
    def order_executed(self) -> bool:
        """Whether the VM called the kernels in exactly the scheduled order."""
        return self.ours.run.kernels == self.kernels


def compile_and_compare(
    module: Any,
    target: str = "llvm",
    options: Options | None = None,
    *,
    inputs: Sequence[np.ndarray[Any, Any]] | None = None,
    seed: int = 0,
    rewritten: Any = None,
    tuned: Callable[[Any], Any] | None = None,
    notify: Notify = lambda _text: None,
) -> Comparison:
    """Return the three builds of ``module`` for ``target``, run on the same inputs.

    Inputs default to seeded random ones. ``rewritten``: what is ordered and placed in place of
    ``module``; stock TVM gets ``module``. ``tuned`` makes the kernels' lean forms.
    ``notify`` is told each step.
    """
    machine = tvm.target.Target(target)
    inputs = random_inputs(module, seed) if inputs is None else inputs
    start = module if rewritten is None else rewritten
    with machine:
        lean = LeanKernels(machine, tiling_for(machine), tuned)(start)
    graph = read_function(lean).graph
    notify(f"ordering {len(graph.ops)} kernels")
    found = schedule(graph, "auto", options or Options())
    notify("placing tensors")
    given_plan, best_plan = plan_graph(graph)[1], plan_graph(graph, order=found.order)[1]
    pinned = order_module(lean, lambda _graph: found.order)
    runs = {}
    for name, source, pipeline in (
        ("stock TVM", module, "default"),
        ("given order, one arena", lean, serenity_pipeline("given")),
        ("best order, one arena", pinned, serenity_pipeline("given")),
    ):
        notify(f"compiling and running: {name}")
        executable = tvm.compile(source, target=machine, relax_pipeline=pipeline)
        runs[name] = (executable, run(executable, inputs))
    stock, given, ours = runs.items()
    scratch = largest_workspace(stock_kernels(module, machine))
    return Comparison(
        graph,
        found,
        given_plan,
        best_plan,
        Variant(stock[0], *stock[1], scratch),
        Variant(given[0], *given[1], 0),
        Variant(ours[0], *ours[1], 0),
        tuple(graph.ops[op].kind for op in found.order if graph.ops[op].kind != "relax.reshape"),
    )


def equal_outputs(left: Variant, right: Variant) -> dict[str, Any]:
    """Return whether two variants computed the same, bit for bit, and the largest difference."""
    return dict(compare(left.run.outputs, right.run.outputs))


def stock_kernels(module: Any, target: Any) -> Any:
    """Return the module with the kernels that ``tvm.compile`` makes by default: not fused."""
    with target:
        return relax.transform.LegalizeOps()(module)


def largest_workspace(module: Any) -> int:
    """Return the bytes the most demanding kernel allocates while it runs, at the least."""
    kernels = [f for _, f in module.functions.items() if isinstance(f, tvm.tirx.PrimFunc)]
    sizes = [workspace_of(kernel) for kernel in kernels]
    return max(sizes, default=0)
