"""Measures several forms of one kernel in alternation on the same arguments.

On a busy machine, run times vary with the load, and the fastest of many forms may only have been
measured at a quiet time. So each round measures the default form too. The time of another form is
the larger of two values: its minimum, and the default form's minimum times the median ratio of the
two forms in the same round. After the first rounds, only the fastest few forms are measured.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import tvm
from tvm import tirx

from tvm_serenity import compat
from tvm_serenity.kernels.vector_math import in_vectors
from tvm_serenity.kernels.workspace import placeable, workspace_of
from tvm_serenity.tvm_targets import names_processor
from tvm_serenity.validation.execute import Signature
from tvm_serenity.validation.inputs import Array, input_sets
from tvm_serenity.validation.kernels import Case, check
from tvm_serenity.validation.report import EXACT
from tvm_serenity.validation.tolerances import FUSED

ROUNDS, FIRST, FINALISTS = 30, 3, 4
"""Number of rounds; number of first rounds, which measure all forms; number of forms that the other
rounds measure beside the default form."""
LEAST_MS = 3
"""Minimum milliseconds of one measurement; short kernels run several times."""


@dataclass(frozen=True)
class Turns:
    """The forms of one kernel, compiled as in the pipeline; the default form is first."""

    case: Case
    target: tvm.target.Target
    kernels: tuple[Any, ...]
    built: Any

    @staticmethod
    def of(case: Case, forms: Sequence[tirx.PrimFunc], target: tvm.target.Target) -> "Turns":
        """Compile ``forms`` of the kernel of ``case`` for ``target`` and return them."""
        math_in_vectors = names_processor(target)
        variants = tuple(in_vectors(form) if math_in_vectors else form for form in forms)
        functions = {f"form{i}": placeable(form) for i, form in enumerate(variants)}
        functions["plain"] = variants[0]
        named = {name: f.with_attr("global_symbol", name) for name, f in functions.items()}
        return Turns(case, target, variants, tvm.compile(tvm.IRModule(named), target=target).jit())

    def seconds(self, rounds: int = ROUNDS) -> list[float]:
        """Return the seconds of each form; infinite for forms that the first rounds excluded."""
        every = dict(enumerate(self._arguments()))
        turns: dict[int, list[float]] = {index: [] for index in every}
        for number in range(rounds):
            for index, arguments in every.items():
                turns[index].append(self._turn(index, arguments))
            if number + 1 == FIRST:
                ahead = sorted(every, key=lambda i: (i != 0, min(turns[i])))[: FINALISTS + 1]
                every = {i: every[i] for i in sorted(ahead)}
        return [careful(turns[0], turns[index]) if index in every else math.inf for index in turns]

    def _turn(self, index: int, arguments: Sequence[Any]) -> float:
        timed = self.built.time_evaluator(
            f"form{index}", tvm.cpu(), number=1, repeat=1, min_repeat_ms=LEAST_MS
        )
        return float(timed(*arguments).results[0])

    def same(self, index: int, seed: int) -> bool:
        """Return whether the results of form ``index`` equal the default form's.

        Integers must be bit-identical; floats too, unless the target contracts multiply-adds.
        """
        tolerance = FUSED if compat.contracts(self.target) else EXACT
        case = replace(self.case, made=self.kernels[index], signature=self._signature(index))
        functions = self.built["plain"], self.built[f"form{index}"]
        return check(case, *functions, seed, tolerance)[1] is None

    def _signature(self, index: int) -> Signature:
        return replace(self.case.signature, workspace_bytes=workspace_of(self.kernels[index]))

    def _arguments(self) -> list[list[Any]]:
        """Return the arguments for each form: constants, random inputs, outputs, and scratch."""
        drawn = next(input_sets(self.case.parameters(), 0, ("random",)))
        given: Mapping[int, Array] = {
            **self.case.constants,
            **dict(zip(self.case.drawn, drawn, strict=True)),
        }
        tensors = [
            tvm.runtime.tensor(given[i])
            if i in given
            else tvm.runtime.empty(shape, "bool" if dtype == "bool" else dtype)
            for i, (shape, dtype) in enumerate(self.case.signature.tensors)
        ]
        every = []
        for index in range(len(self.kernels)):
            size = self._signature(index).workspace_bytes
            every.append([*tensors, *([tvm.runtime.empty((size,), "uint8")] if size else [])])
        return every


def careful(usual: Sequence[float], other: Sequence[float]) -> float:
    """Return the seconds of a form, as the module's docstring defines them.

    ``usual`` and ``other``: seconds of the default form and of the form, round by round.
    """
    shares = [mine / its for mine, its in zip(other, usual, strict=True)]
    return max(min(other), min(usual) * statistics.median(shares))
