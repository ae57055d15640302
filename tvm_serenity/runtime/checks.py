"""The checks before a compiled network is returned: kernels, results, order, reference runtime."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_serenity.errors import CheckError, WrongResultError
from tvm_serenity.graph import Graph
from tvm_serenity.plan import Plan, check_plan
from tvm_serenity.relax.compiled import Built, built
from tvm_serenity.relax.lower import lowered
from tvm_serenity.runtime.vm import Run, run
from tvm_serenity.validation.compiling import reference_target, same
from tvm_serenity.validation.execute import POISONS
from tvm_serenity.validation.network import Verdict, compared_with_reference
from tvm_serenity.validation.network_inputs import network_inputs
from tvm_serenity.validation.reference_spec import ReferenceSpec
from tvm_serenity.validation.report import EXACT, Tolerance, first_difference

Inputs = Sequence[np.ndarray[Any, Any]]
Notify = Callable[[str], None]


@dataclass(frozen=True)
class Checks:
    """The checks that run before a build is returned.

    ``kernels``: compare each distinct kernel, and the network, with TVM's own kernels. ``before``:
    the module before rewriting or row streaming, whose results must be equal within ``tolerance``.
    ``stock``: also compile and run the module as TVM does by default. ``reference``: the model's
    own runtime. ``folder``: where reproducers are written.
    """

    kernels: bool = True
    before: tvm.IRModule | None = None
    tolerance: Tolerance = EXACT
    stock: bool = False
    reference: ReferenceSpec | None = None
    folder: Path = Path()


@dataclass(frozen=True, eq=False)
class Builds:
    """A ``module`` for a target: lowered with TVM's own kernels (``plain``), and both builds."""

    module: tvm.IRModule
    plain: tvm.IRModule
    target: tvm.target.Target
    given: Built
    ours: Built
    notify: Notify = lambda _text: None

    @property
    def same(self) -> Tolerance:
        """The tolerance between two forms of a kernel: zero if the target fuses nothing."""
        return same(self.target)

    def by_tvm(self, lowered: tvm.IRModule) -> relax.VMExecutable:
        """Return a lowered module compiled with TVM's own kernels and memory plan."""
        target = reference_target(self.target)
        made = built(lowered, self.target, notify=self.notify, compiled_for=target)
        return made.executable


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Two runs of each build on fresh inputs, and one run each of ``stock`` and ``reference``.

    ``stock`` and ``reference`` are None if they were not run.
    """

    inputs: tuple[Inputs, Inputs]
    stock: Run | None
    given: tuple[Run, Run]
    ours: tuple[Run, Run]
    reference: Run | None
    tolerance: Tolerance

    def check(self, kernels: tuple[str, ...]) -> None:
        """Raise :class:`WrongResultError` for a wrong result or an order other than planned."""
        for given, ours in zip(self.given, self.ours, strict=True):
            difference = first_difference(given.outputs, ours.outputs)
            if difference is not None:
                raise WrongResultError(
                    f"the results of the reordered module differ from those of the given order: "
                    f"{difference.text()}"
                )
        if self.reference is not None:
            difference = first_difference(
                self.reference.outputs, self.ours[0].outputs, self.tolerance
            )
            if difference is not None:
                raise WrongResultError(
                    "the results of the compiled module differ from those of TVM's own kernels on "
                    f"the model as it was: {difference.text()}"
                )
        called = self.ours[0].kernels
        if called != kernels:
            first = next(
                (i for i, (a, b) in enumerate(zip(called, kernels, strict=False)) if a != b),
                min(len(called), len(kernels)),
            )
            names = [k[first] if first < len(k) else "the end" for k in (called, kernels)]
            raise WrongResultError(
                f"the VM did not execute the scheduled order: call {first} is {names[0]}, "
                f"not {names[1]}"
            )


def is_view(graph: Graph, op: int) -> bool:
    """Return whether an operator runs no kernel, because its result is a view."""
    return graph.ops[op].kind == "relax.reshape"


def check_plans(plans: Sequence[Plan]) -> None:
    """Check plans with the checker that shares no code with the planners."""
    try:
        for plan in plans:
            check_plan(plan.buffers, plan.offsets)
    except CheckError as error:
        raise WrongResultError(f"the checker rejects the memory plan: {error}") from error


def run_all(builds: Builds, checks: Checks, inputs: Inputs, seed: int) -> Runs:
    """Run all builds in poisoned memory, each run with another poison byte."""
    first, second = POISONS
    given, ours = builds.given.executable, builds.ours.executable
    once = run(given, inputs, poison=first), run(ours, inputs, poison=second)
    stock, reference, tolerance = None, None, builds.same
    if checks.stock:
        stock = run(built(builds.module, builds.target).executable, inputs, poison=first)
    if checks.before is not None:
        reference = run(builds.by_tvm(lowered(checks.before, builds.target)), inputs)
        tolerance = checks.tolerance
    elif checks.kernels:
        reference = run(builds.by_tvm(builds.plain), inputs)
    more = network_inputs(builds.module, seed + 1, once[1].outputs)
    again = run(given, more, poison=second), run(ours, more, poison=first)
    return Runs(
        inputs=(inputs, more),
        stock=stock,
        given=(once[0], again[0]),
        ours=(once[1], again[1]),
        reference=reference,
        tolerance=tolerance,
    )


def compare_with_runtime(spec: ReferenceSpec, runs: Runs, notify: Notify) -> Verdict:
    """Return how results compare with the reference runtime's.

    Raises :class:`WrongResultError` if they are wrong.
    """
    notify(f"comparing with {spec.runtime}")
    pairs = [(i, r.outputs) for i, r in zip(runs.inputs, runs.ours, strict=True)]
    verdict = compared_with_reference(spec, pairs)
    if verdict.outcome == "wrong":
        raise WrongResultError(verdict.text())
    return verdict
