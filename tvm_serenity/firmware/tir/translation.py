"""Translation validation: every C kernel of a program against TVM's own for the same operators.

The text that is written, compiled for this machine, runs on fresh inputs in guarded memory full of
garbage, in place where the program does; TVM's kernel is the one before any schedule of ours,
compiled by LLVM. Each kernel is run once with the constants, and in the way, it is called with.
"""

import ctypes
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relax, tirx
from tvm.ir.prim import expr as prim

from tvm_serenity import compat
from tvm_serenity.firmware.emit.c import symbol
from tvm_serenity.firmware.program import Array, Const, Data, Scratch, Step
from tvm_serenity.firmware.replay import recorded, split
from tvm_serenity.firmware.tir.llvm import HOST, OBJECT, compile_kernels
from tvm_serenity.firmware.tir.program import Compiled
from tvm_serenity.firmware.trial import Block, Call, Compilation, Trial, TrialResult, run
from tvm_serenity.firmware.ulp import ulps
from tvm_serenity.kernels.nodes import parts
from tvm_serenity.validation.inputs import FILLS, Parameter, Range, input_sets
from tvm_serenity.validation.isolated import Death, isolated
from tvm_serenity.validation.kernels import Checked
from tvm_serenity.validation.ranges import parameter_ranges
from tvm_serenity.validation.report import (
    Difference,
    Tolerance,
    Wrong,
    fail,
    first_difference,
    write_reproducer,
)
from tvm_serenity.validation.steps import steps_of, zero_of

LIMIT_S = 300.0
"""Seconds one kernel may take for its checks."""
POISONS = (0xA5, 0x5A)
FEW_STEPS, MANY_STEPS = 300_000, 30_000_000
"""Innermost steps of a kernel up to which it runs on all sets of inputs, and on three of them."""

Function = Callable[..., Any]


@dataclass(frozen=True)
class Reference:
    """TVM's kernel ``source`` called ``name``, and what it is called with.

    ``given``: by position the input that is drawn (its number) or a constant; ``written`` are
    the positions of its results.
    """

    name: str
    source: Any
    given: tuple[int | Array, ...]
    written: tuple[int, ...]

    def shape(self, position: int) -> tuple[int, ...]:
        """The shape of a parameter."""
        return tuple(compat.buffer_shape(self.source.params[position]))

    def dtype(self, position: int) -> str:
        """The type of a parameter's elements, as numpy names it."""
        return str(compat.buffer_dtype(self.source.params[position]))

    def parameters(self) -> list[Parameter]:
        """Return what is known of each input that is drawn."""
        allowed, zero = parameter_ranges(self.source), zero_of(self.source)
        stored = _stored_range(self.source)
        for position, buffer in enumerate(self.source.params):
            if stored is not None and str(compat.buffer_dtype(buffer)).startswith("float"):
                allowed.setdefault(position, stored)
        drawn = {n: i for i, n in reversed(list(enumerate(self.given))) if isinstance(n, int)}
        return [
            Parameter(self.shape(i), self.dtype(i), allowed.get(i), zero)
            for _, i in sorted(drawn.items())
        ]

    def results(self, function: Function, inputs: Sequence[Array]) -> list[Array]:
        """Return what TVM's kernel makes of ``inputs``."""
        given = [inputs[n] if isinstance(n, int) else n for n in self.given]
        arrays = [array.reshape(self.shape(i)) for i, array in enumerate(given)]
        count = len(self.source.params)
        arrays += [np.zeros(self.shape(i), self.dtype(i)) for i in range(len(arrays), count)]
        tensors = [tvm.runtime.tensor(np.asarray(array, order="C")) for array in arrays]
        function(*tensors)
        return [tensors[i].numpy() for i in self.written]


def _stored_range(source: tirx.PrimFunc) -> Range | None:
    """What floats must lie within that are stored as 8 or 16 bits without being clamped.

    Beyond it a conversion is undefined in C: networks keep to it (an average of stored values).
    """
    found = None
    for cast in parts(source.body, prim.Cast):
        to, of = str(_dtype(cast)), str(_dtype(cast.value))
        clamped = isinstance(cast.value, prim.Max | prim.Min)
        if to in ("int8", "uint8", "int16", "uint16") and of.startswith("float") and not clamped:
            limits = np.iinfo(to)
            found = Range(int(limits.min), int(limits.max))
    return found


def _dtype(expr: tirx.Expr) -> Any:
    return getattr(expr.ty.dtype, "dtype", expr.ty.dtype)


@dataclass(frozen=True)
class Case:
    """A kernel as the program calls it; ``trials`` makes its calls for inputs.

    Each trial stands for ``whole`` results, one after the other.
    """

    operator: str
    kernel: str
    reference: Reference
    trials: Callable[[Sequence[Array], int], Sequence[Trial]]


def cases(made: Compiled) -> list[Case]:
    """Return every distinct kernel of a program with the constants it is called with."""
    program = made.program
    found: dict[Any, Case] = {}
    called = [op for op in made.order if _kernel(made, op) is not None]
    for op, step in zip(called, program.steps, strict=True):
        case, key = _case(made, op, step)
        found.setdefault(key, case)
    return list(found.values())


def _kernel(made: Compiled, op: int) -> Any:
    return compat.called_kernel(made.region.bindings[made.region.run[op]].value)


def reference_of(lowered: tvm.IRModule, call: relax.Call, memory: Sequence[Hashable]) -> Reference:
    """Return TVM's kernel of a call.

    ``memory``: where each argument lies that is no constant; the same place is drawn once.
    """
    name = compat.called_kernel(call).name_hint
    source = next(f for g, f in lowered.functions.items() if g.name_hint == name)
    arguments = compat.kernel_arguments(call)
    drawn: dict[Any, int] = {}
    given: list[Any] = []
    places = iter(memory)
    for argument in arguments:
        if compat.is_constant(argument):
            given.append(compat.constant_array(argument))
        else:
            given.append(drawn.setdefault(next(places), len(drawn)))
    taken = compat.overwritten(call)
    written = tuple(range(len(arguments), len(source.params)))
    if taken is not None:
        written = (next(i for i, a in enumerate(arguments) if a.same_as(taken)),)
    return Reference(name, source, tuple(given), written)


def _case(made: Compiled, op: int, step: Step) -> tuple[Case, Any]:
    program = made.program
    call = made.region.bindings[made.region.run[op]].value
    passed = [program.places[a.tensor] for a in step.arguments if isinstance(a, Data)]
    read = sum(not compat.is_constant(a) for a in compat.kernel_arguments(call))
    reference = reference_of(made.lowered, call, passed[:read])
    inputs = iter([n for n in reference.given if isinstance(n, int)])
    places: dict[Any, int] = {}
    drawn: dict[int, int] = {}
    blocks: list[Block] = []
    numbers: list[int] = []
    alignment = program.alignment_bytes
    for argument in step.arguments:
        if isinstance(argument, Const):
            held = program.constants[argument.constant].array
            blocks.append(Block.of(held, alignment))
        elif isinstance(argument, Scratch):
            blocks.append(Block(argument.size_bytes, alignment, writable=True))
        else:
            place = program.places[argument.tensor]
            if place not in places:
                places[place] = len(blocks)
                blocks.append(Block(program.tensors[argument.tensor].size_bytes, alignment))
            number = next(inputs, None)
            if number is not None:
                drawn[number] = places[place]
            numbers.append(places[place])
            continue
        numbers.append(len(blocks) - 1)
    results = tuple(places[program.places[t]] for t in step.writes)
    for index in results:
        blocks[index] = replace(blocks[index], writable=True)
    run_it = Call(symbol(program, step.kernel), tuple(numbers))

    def trials(arrays: Sequence[Array], _number: int) -> Sequence[Trial]:
        filled = list(blocks)
        for number, index in drawn.items():
            filled[index] = replace(filled[index], held=arrays[number])
        return [Trial(tuple(filled), (run_it,), results)]

    name = made.graph.ops[op].name
    constants = tuple(a.constant for a in step.arguments if isinstance(a, Const))
    key = (step.kernel, reference.name, constants, tuple(numbers), results)
    return Case(name, step.kernel, reference, trials), key


def validate(
    found: Sequence[Case],
    executable: relax.VMExecutable,
    compilation: Compilation,
    *,
    limit_ulp: int,
    folder: Path,
    seed: int = 0,
) -> Checked:
    """Compare all kernels with TVM's of ``executable``; return how much was compared.

    The first that differs is written as a reproducer into ``folder`` and raised as
    :class:`WrongResultError`.
    """
    module = executable.jit()  # compiled once, before the child has it
    functions = {
        case.reference.name: module.get_function(case.reference.name, query_imports=True)
        for case in found
    }
    library = compilation.library
    running = sets = 0

    def work() -> Iterator[tuple[int, Failure | None]]:
        for case in found:
            yield checked(case, functions[case.reference.name], library, limit_ulp, seed)

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


def fills_of(source: tirx.PrimFunc) -> tuple[str, ...]:
    """Return the sets of inputs a kernel runs on: fewer where it takes long."""
    steps = steps_of(source)
    if steps <= FEW_STEPS:
        return FILLS
    return ("mixed", "min", "max") if steps <= MANY_STEPS else ("mixed",)


@dataclass(frozen=True)
class Failure:
    """What was wrong in which trial, and what it should have left."""

    what: Difference | str
    trial: Trial
    poison: int
    expected: Sequence[Array]


def checked(
    case: Case, function: Function, library: ctypes.CDLL, limit_ulp: int, seed: int
) -> tuple[int, Failure | None]:
    """Return the sets that were compared, and the first failure."""
    count = 0
    fills = fills_of(case.reference.source)
    sets = input_sets(case.reference.parameters(), seed, fills)
    for count, inputs in enumerate(sets, 1):
        expected = case.reference.results(function, inputs)
        for trial in case.trials(inputs, count):
            poison = POISONS[count % 2]
            outcome = run(library, trial, poison)
            apart = outcome.damage or difference(expected, outcome, limit_ulp)
            if apart is not None:
                return count, Failure(apart, trial, poison, expected)
    return count, None


def difference(
    expected: Sequence[Array], outcome: TrialResult, limit_ulp: int
) -> Difference | None:
    """Return the first difference; floats may be ``limit_ulp`` units in the last place off.

    Of their own last place, or of that of the result's largest number.
    """
    got = split(outcome.result, expected)
    for index, want in enumerate(expected):
        if want.dtype == np.float32:
            got[index] = np.where(ulps(got[index], want) <= limit_ulp, want, got[index])
    return first_difference(expected, got, Tolerance(limit_ulp * 2.0**-23))


def _refuse(case: Case, failure: Failure, compilation: Compilation, folder: Path) -> None:
    """Leave a reproducer and raise :class:`WrongResultError`."""
    here = compilation.directory
    texts = {f.name: f.read_text("utf-8") for f in sorted(here.glob("*_kernels.[ch]"))}
    described, arrays = recorded(failure.trial, failure.poison, failure.expected)
    described |= {"operator": case.operator, "kernel": case.kernel, "sources": texts}
    described["reference"] = str(case.reference.source.script(show_meta=True))
    place = write_reproducer(folder / f"serenity-wrong-{case.kernel}", described, arrays)
    fail(Wrong(case.operator, case.kernel, "TVM's own kernel", failure.what), place)


def host_object(made: Compiled) -> dict[str, bytes]:
    """Return the kernels that LLVM compiled for the board, compiled by it for this machine."""
    if not made.compiled_here:
        return {}
    program = made.program
    found = compile_kernels(made.compiled_here, HOST, program.name, program.alignment_bytes)
    return {OBJECT: found.object}
