"""What must hold before a compiled network is handed out: kernels, results, order, referee."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_serenity import compat
from tvm_serenity.errors import CheckError, WrongResultError
from tvm_serenity.graph import Graph
from tvm_serenity.plan import Plan, check_plan
from tvm_serenity.relax.lower import lowered
from tvm_serenity.runtime.vm import Run, run
from tvm_serenity.tvm_targets import with_plain_loops
from tvm_serenity.validation.drawn import network_inputs
from tvm_serenity.validation.execute import POISONS
from tvm_serenity.validation.judge import Judge
from tvm_serenity.validation.kernels import Checked, cases, validate_kernels
from tvm_serenity.validation.network import Verdict, judged
from tvm_serenity.validation.report import EXACT, Tolerance, first_difference
from tvm_serenity.validation.tolerances import FUSED

Inputs = Sequence[np.ndarray[Any, Any]]
Notify = Callable[[str], None]


@dataclass(frozen=True)
class Checks:
    """What is checked before a comparison is returned.

    ``kernels``: each distinct kernel, and the whole network, against TVM's own kernels. ``before``:
    the module that was rewritten or cut into rows, whose results must be the same within
    ``tolerance``. ``judge``: the model's own runtime. ``folder``: where reproducers go.
    """

    kernels: bool = True
    before: tvm.IRModule | None = None
    tolerance: Tolerance = EXACT
    judge: Judge | None = None
    folder: Path = Path()


class Builds:
    """The modules of one comparison and their executables; those of references when needed."""

    def __init__(
        self,
        module: tvm.IRModule,
        plain: tvm.IRModule,
        lean: tvm.IRModule,
        target: tvm.target.Target,
        *executables: relax.VMExecutable,
    ) -> None:
        self.module, self.plain, self.lean, self.target = module, plain, lean, target
        self.stock, self.given, self.ours = executables
        self._plain: relax.VMExecutable | None = None

    @property
    def same(self) -> Tolerance:
        """How far two forms of one kernel may be apart: not at all where nothing is fused."""
        return FUSED if compat.contracts(self.target) else EXACT

    def reference(self) -> Any:
        """Return TVM's own kernels on memory that TVM plans."""
        if self._plain is None:
            target = with_plain_loops(self.target)
            self._plain = tvm.compile(self.plain, target=target, relax_pipeline="default")
        return self._plain


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Two runs on fresh inputs of what must compute the same; ``stock`` and ``reference`` one."""

    inputs: tuple[Inputs, Inputs]
    stock: Run
    given: tuple[Run, Run]
    ours: tuple[Run, Run]
    reference: Run | None
    tolerance: Tolerance

    def check(self, kernels: tuple[str, ...]) -> None:
        """Raise :class:`WrongResultError` for a wrong result, or another order than planned."""
        for given, ours in zip(self.given, self.ours, strict=True):
            apart = first_difference(given.outputs, ours.outputs)
            if apart is not None:
                raise WrongResultError(
                    f"the reordered module computes something else than the given order: "
                    f"{apart.text()}"
                )
        if self.reference is not None:
            apart = first_difference(self.reference.outputs, self.ours[0].outputs, self.tolerance)
            if apart is not None:
                raise WrongResultError(
                    "the compiled module computes something else than TVM's own kernels on the "
                    f"model as it was: {apart.text()}"
                )
        called = self.ours[0].kernels
        if called != kernels:
            first = next(
                (i for i, (a, b) in enumerate(zip(called, kernels, strict=False)) if a != b),
                min(len(called), len(kernels)),
            )
            names = [k[first] if first < len(k) else "the end" for k in (called, kernels)]
            raise WrongResultError(
                f"the VM did not execute the order: call {first} is {names[0]}, not {names[1]}"
            )


def is_view(graph: Graph, op: int) -> bool:
    """Whether an operator runs no kernel: it shows another tensor's bytes."""
    return graph.ops[op].kind == "relax.reshape"


def check_plans(plans: Sequence[Plan]) -> None:
    """Check plans by the checker that shares no code with the planners."""
    try:
        for plan in plans:
            check_plan(plan.buffers, plan.offsets)
    except CheckError as error:
        raise WrongResultError(f"the plan is wrong: {error}") from error


def validated_kernels(builds: Builds, checks: Checks, seed: int, notify: Notify) -> Checked:
    """Compare the kernels of ours with TVM's own."""
    found = cases(builds.plain, builds.lean)
    if not found:
        return Checked(0, 0)
    notify("compiling: TVM's own kernels")
    forms = compat.kernels_of(builds.reference()), compat.kernels_of(builds.ours)
    notify(f"validating {len(found)} kernels")
    return validate_kernels(found, *forms, seed=seed, folder=checks.folder, tolerance=builds.same)


def run_all(builds: Builds, checks: Checks, inputs: Inputs, seed: int) -> Runs:
    """Run everything in memory full of garbage, other garbage each time."""
    first, second = POISONS
    stock = run(builds.stock, inputs, poison=first)
    given, ours = run(builds.given, inputs, poison=first), run(builds.ours, inputs, poison=second)
    reference, tolerance = None, builds.same
    if checks.before is not None:
        plain = lowered(checks.before, builds.target)
        target = with_plain_loops(builds.target)
        original = tvm.compile(plain, target=target, relax_pipeline="default")
        reference, tolerance = run(original, inputs), checks.tolerance
    elif checks.kernels:
        reference = run(builds.reference(), inputs)
    more = network_inputs(builds.module, seed + 1, ours.outputs)
    again = run(builds.given, more, poison=second), run(builds.ours, more, poison=first)
    return Runs(
        inputs=(inputs, more),
        stock=stock,
        given=(given, again[0]),
        ours=(ours, again[1]),
        reference=reference,
        tolerance=tolerance,
    )


def ask_judge(judge: Judge, runs: Runs, notify: Notify) -> Verdict:
    """Return the judge's verdict; :class:`WrongResultError` where it computes something else."""
    notify(f"comparing with {judge.runtime}")
    pairs = [(i, r.outputs) for i, r in zip(runs.inputs, runs.ours, strict=True)]
    verdict = judged(judge, pairs)
    if verdict.outcome == "wrong":
        raise WrongResultError(verdict.text())
    return verdict
