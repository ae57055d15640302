"""Translation validation: compare every C kernel of a program with TVM's own kernel.

The C sources are compiled for this machine and run on fresh inputs in guarded, poisoned memory, in
place where the program works in place. TVM's kernel is compiled by LLVM without our schedules. Each
kernel is run once for each combination of constants and arguments in the program.
"""

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tvm
from tvm import tirx

from tvm_serenity.firmware.check.exact import meaning
from tvm_serenity.firmware.check.reproducer import recorded, split
from tvm_serenity.firmware.check.trial import Compilation, Trial, TrialResult, run
from tvm_serenity.firmware.compile.compiled import Compiled
from tvm_serenity.firmware.lower.llvm import HOST, OBJECT, compile_kernels
from tvm_serenity.firmware.program import Array
from tvm_serenity.firmware.ulp import ulps
from tvm_serenity.firmware.validate.cases import Case
from tvm_serenity.firmware.validate.channels import spec_in
from tvm_serenity.firmware.validate.kernel_reference import Function
from tvm_serenity.firmware.validate.rounding import approximated, rounding
from tvm_serenity.system.isolated import Death, isolated
from tvm_serenity.validation.inputs import FILLS, input_sets
from tvm_serenity.validation.kernels import Checked
from tvm_serenity.validation.report import (
    TVMS,
    Difference,
    Tolerance,
    Wrong,
    fail,
    first_difference,
    write_reproducer,
)
from tvm_serenity.validation.steps import reads_table, steps_of
from tvm_serenity.validation.sweeps import sweeps

LIMIT_S = 300.0
"""Seconds that the checks of one kernel may take."""
POISONS = (0xA5, 0x5A)
EXACTLY = "the operator in exact integers"
FEW_STEPS, MANY_STEPS = 300_000, 30_000_000
"""Innermost steps up to which a kernel runs on all sets of inputs, and on three of them."""


def validate(
    found: Sequence[Case],
    plain: tvm.runtime.Module,
    compilation: Compilation,
    *,
    limit_ulp: int,
    folder: Path,
    seed: int = 0,
) -> Checked:
    """Compare all kernels with TVM's in ``plain``; return the number of comparisons.

    The first kernel that differs is written to ``folder`` as a reproducer and raised as
    :class:`WrongResultError`.
    """
    functions = {
        one.name: plain.get_function(one.name, query_imports=True)
        for case in found
        for one in case.reference.all
    }
    library = compilation.library
    running = sets = 0

    def work() -> Iterator[tuple[int, Failure | None]]:
        for case in found:
            yield checked(case, functions, library, limit_ulp, seed)

    try:
        for count, failure in isolated(work, LIMIT_S):
            if failure is not None:
                _refuse(found[running], failure, compilation, folder)
            running, sets = running + 1, sets + count
    except Death as death:
        case = found[running]
        inputs = next(input_sets(case.reference.parameters(), seed))
        trial = case.trials(inputs, 1)[0]
        _refuse(case, Failure(str(death), trial, POISONS[1], ()), compilation, folder)
    return Checked(len(found), sets)


def fills_of(*sources: tirx.PrimFunc) -> tuple[str, ...]:
    """Return the sets of inputs to run kernels on; slow kernels have fewer."""
    steps = sum(map(steps_of, sources))
    if steps <= FEW_STEPS:
        return FILLS
    return ("mixed", "min", "max") if steps <= MANY_STEPS else ("mixed",)


def steps_together(found: Sequence[Case]) -> int:
    """Return the innermost steps of all distinct kernels, about the work of a network."""
    return sum(steps_of(one.source) for case in found for one in case.reference.all)


@dataclass(frozen=True)
class Failure:
    """A difference, its trial and poison, the expected results, and the reference."""

    what: Difference | str
    trial: Trial
    poison: int
    expected: Sequence[Array]
    against: str = TVMS


def checked(
    case: Case,
    functions: Mapping[str, Function],
    library: ctypes.CDLL,
    limit_ulp: int,
    seed: int,
) -> tuple[int, Failure | None]:
    """Return the number of sets compared, and the first failure; ``functions``: TVM's by name."""
    count, spec = 0, spec_in(case.reference)
    for count, inputs in enumerate(_sets(case, seed), 1):
        read = case.reference.read(functions, inputs)
        expected = case.reference.results(functions[case.reference.name], read)
        means = meaning(spec, case.reference.arrays(read))
        trials = case.trials(inputs, count)
        if means is not None:
            off = first_difference([means.reshape(expected[0].shape)], expected)
            if off is not None:
                return count, Failure(off, trials[0], POISONS[0], [means], EXACTLY)
        for trial in trials:
            poison = POISONS[count % 2]
            outcome = run(library, trial, poison)
            apart = outcome.damage or difference(expected, outcome, limit_ulp)
            if isinstance(apart, Difference) and approximated(case.reference.source):
                units = rounding(case.reference, read, expected)
                apart = difference(expected, outcome, limit_ulp, units)
            if apart is not None:
                return count, Failure(apart, trial, poison, expected)
    return count, None


def _sets(case: Case, seed: int) -> Iterator[list[Array]]:
    """Yield the inputs of a kernel: random ones, and for tables those that read every entry."""
    parameters = case.reference.parameters()
    yield from input_sets(parameters, seed, fills_of(*(one.source for one in case.reference.all)))
    if any(map(reads_table, (one.source for one in case.reference.all))):
        yield from sweeps(parameters)


def difference(
    expected: Sequence[Array],
    outcome: TrialResult,
    limit_ulp: int,
    units: Sequence[Array] | None = None,
) -> Difference | None:
    """Return the first difference; floats may differ by ``limit_ulp`` units in the last place.

    The unit is that of the number itself, of the largest number of the result, or ``units`` of
    each.
    """
    got = split(outcome.result, expected)
    for index, want in enumerate(expected):
        if want.dtype == np.float32:
            near = ulps(got[index], want) <= limit_ulp
            if units is not None:
                apart = np.abs(got[index].astype(np.float64) - want.astype(np.float64))
                near |= apart <= (1 + limit_ulp) * units[index]
            got[index] = np.where(near, want, got[index])
    return first_difference(expected, got, Tolerance(limit_ulp * 2.0**-23))


def _refuse(case: Case, failure: Failure, compilation: Compilation, folder: Path) -> None:
    """Write a reproducer and raise :class:`WrongResultError`."""
    here = compilation.directory
    texts = {f.name: f.read_text("utf-8") for f in sorted(here.glob("*_kernels.[ch]"))}
    described, arrays = recorded(failure.trial, failure.poison, failure.expected)
    described |= {"operator": case.operator, "kernel": case.kernel, "sources": texts}
    described["against"] = failure.against
    described["reference"] = str(case.reference.source.script(show_meta=True))
    place = write_reproducer(folder / f"serenity-wrong-{case.kernel}", described, arrays)
    fail(Wrong(case.operator, case.kernel, failure.against, failure.what), place)


def host_object(made: Compiled) -> dict[str, bytes]:
    """Return the kernels that LLVM compiled for the board, compiled for this machine."""
    if not made.compiled_here:
        return {}
    program = made.program
    found = compile_kernels(made.compiled_here, HOST, program.name, program.alignment_bytes)
    return {OBJECT: found.object}
