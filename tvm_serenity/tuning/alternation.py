"""Forms of one kernel run in turns on the same arguments: the seconds of each, with care.

On a machine that other work uses, runs one after the other differ by what else goes on, and of many
forms the least is often the one that was lucky. So the usual form takes a turn in every round, and
another one is said to take its least seconds, or its median share of the usual one's turn in the
same round, whichever is more. The fastest few of the first rounds go on.
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
"""Rounds in all, the first ones of all forms, and how many forms beside the usual one go on."""
LEAST_MS = 3
"""Milliseconds of one turn, by which short kernels are repeated."""


@dataclass(frozen=True)
class Turns:
    """The forms of one kernel, compiled as they are placed in an arena; the usual one first."""

    case: Case
    target: tvm.target.Target
    kernels: tuple[Any, ...]
    built: Any

    @staticmethod
    def of(case: Case, forms: Sequence[tirx.PrimFunc], target: tvm.target.Target) -> "Turns":
        """Compile ``forms`` of the kernel of ``case``, as the pipeline would for ``target``."""
        math_in_vectors = names_processor(target)
        made = tuple(in_vectors(form) if math_in_vectors else form for form in forms)
        functions = {f"form{i}": placeable(form) for i, form in enumerate(made)}
        functions["plain"] = made[0]
        named = {name: f.with_attr("global_symbol", name) for name, f in functions.items()}
        return Turns(case, target, made, tvm.compile(tvm.IRModule(named), target=target).jit())

    def seconds(self, rounds: int = ROUNDS) -> list[float]:
        """Return the seconds of each form; infinite of those that did not go on."""
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
        """Return whether a form computes what the usual one does: integers to the bit."""
        tolerance = FUSED if compat.contracts(self.target) else EXACT
        case = replace(self.case, made=self.kernels[index], signature=self._signature(index))
        functions = self.built["plain"], self.built[f"form{index}"]
        return check(case, *functions, seed, tolerance)[1] is None

    def _signature(self, index: int) -> Signature:
        return replace(self.case.signature, workspace_bytes=workspace_of(self.kernels[index]))

    def _arguments(self) -> list[list[Any]]:
        """The tensors of a call of each form: the network's constants, random inputs, scratch."""
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
    """Return the seconds of a form, of its turns and those of the usual one in the same rounds."""
    shares = [mine / its for mine, its in zip(other, usual, strict=True)]
    return max(min(other), min(usual) * statistics.median(shares))
