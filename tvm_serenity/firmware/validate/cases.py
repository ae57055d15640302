"""The cases of translation validation: each kernel call of a program, with TVM's own kernel.

A case is a step with its constants. Unsplit tensors are blocks of memory; each row of a tensor in
bands is a separate block. A kernel for consecutive rows also computes all rows in one call. Tensors
that share bytes in the program share a block. Sums over rows are computed row by row and then
finished; TVM's kernel does both.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tvm_serenity.firmware.check.trial import NOWHERE, Block, Call, Trial
from tvm_serenity.firmware.compile.compiled import Compiled, Source
from tvm_serenity.firmware.emit.c import symbol
from tvm_serenity.firmware.program import Array, Const, Data, Program, Row, RowNumber, Scratch, Step
from tvm_serenity.firmware.validate.kernel_reference import Reference, reference_of


@dataclass(frozen=True)
class Case:
    """A kernel call of the program; ``trials`` returns its calls for given inputs."""

    operator: str
    kernel: str
    reference: Reference
    trials: Callable[[Sequence[Array], int], Sequence[Trial]]


def cases(made: Compiled) -> list[Case]:
    """Return the distinct steps of a program that compute, with their constants."""
    program = made.program
    sums = {step.writes[0]: step for step in program.steps if step.adds}
    found: dict[Any, Case] = {}
    computing = (step for step in program.steps if not step.copies)
    for step, source in zip(computing, made.sources, strict=True):
        if step.adds:
            continue
        read = {a.tensor for a in step.arguments if isinstance(a, Data)}
        before = tuple(sums[t] for t in sorted(read & sums.keys()))
        reference = _reference(made, source)
        case = _Case(program, (*before, step), reference, source.inputs)
        name = made.region.graph.ops[source.op].name
        found.setdefault(case.key, Case(name, step.kernels[0], reference, case.trials))
    return list(found.values())


def _reference(made: Compiled, source: Source) -> Reference:
    """Return TVM's kernels of the operators of a step."""
    found: list[Reference] = []
    for op in (*source.before, source.op):
        call = made.region.bindings[made.region.run[op]].value
        memory: list[Any] = [made.program.memory(t) for t in source.inputs]
        found.append(reference_of(made.lowered, call, ["made"] if found else memory))
    *before, last = found
    return replace(last, before=tuple(before))


class _Blocks:
    """The blocks of a trial, created on demand; ``given``: the arrays by memory."""

    def __init__(self, program: Program, given: dict[Any, Array]) -> None:
        self.program = program
        self.given = given
        self.blocks: list[Block] = []
        self.known: dict[Any, int] = {}

    def add(self, block: Block, key: Any = None) -> int:
        """Return the number of a new block, or of the block with the same ``key``."""
        if key is not None and key in self.known:
            return self.known[key]
        self.blocks.append(block)
        if key is not None:
            self.known[key] = len(self.blocks) - 1
        return len(self.blocks) - 1

    def tensor(self, tensor: int) -> int:
        """Return the block of an unsplit tensor, aligned as in the program."""
        memory, size = self.program.memory(tensor), self.program.tensors[tensor].size_bytes
        return self.add(
            Block(size, _alignment(self.program, tensor), self.given.get(memory)), memory
        )

    def row(self, tensor: int, row: int) -> int:
        """Return the block of a row."""
        memory, height = self.program.memory(tensor), self.program.bands[tensor].height
        held = self.given.get(memory)
        if held is not None:
            held = np.ascontiguousarray(held).reshape(height, -1)[row]
        item = np.dtype(self.program.tensors[tensor].dtype).itemsize
        return self.add(Block(self.program.row_bytes(tensor), item, held), (memory, row))

    def writable(self, block: int) -> None:
        """Mark a block as writable."""
        self.blocks[block] = replace(self.blocks[block], writable=True)


def _alignment(program: Program, tensor: int) -> int:
    """Return the alignment of unsplit tensors: the arena's, or that of an element."""
    places = (place for bands in program.bands for place in bands.places)
    if all(place.offset_bytes % program.alignment_bytes == 0 for place in places):
        return program.alignment_bytes
    return np.dtype(program.tensors[tensor].dtype).itemsize


@dataclass(frozen=True)
class _Case:
    """A case: the last of ``steps``, after the steps that compute the sums it finishes."""

    program: Program
    steps: tuple[Step, ...]
    reference: Reference
    inputs: tuple[int, ...]

    @property
    def key(self) -> Any:
        """The key of a case: equal for steps that call the same kernels with the same arguments."""
        numbers: dict[Any, int] = {}
        found: list[Any] = [one.name for one in self.reference.all]
        for step in self.steps:
            found.append((step.kernels, step.variants, step.outside, step.adds))
            passed = [a for a in step.arguments if not isinstance(a, Scratch)]
            found += [self._named(a, numbers) for a in passed]
            found += [self._tensor(t, numbers) for t in step.writes]
            found += [a.size_bytes for a in step.arguments if isinstance(a, Scratch)]
        return tuple(found)

    def _named(self, argument: Any, numbers: dict[Any, int]) -> Any:
        if isinstance(argument, Data):
            return self._tensor(argument.tensor, numbers)
        if isinstance(argument, Row):
            return self._tensor(argument.tensor, numbers), replace(argument, tensor=0)
        return argument

    def _tensor(self, tensor: int, numbers: dict[Any, int]) -> Any:
        """Return a tensor's number in the order of the first use of its memory."""
        known = self.program.tensors[tensor]
        number = numbers.setdefault(self.program.memory(tensor), len(numbers))
        return number, known.shape, known.dtype, self.program.bands[tensor].height

    def trials(self, arrays: Sequence[Array], number: int) -> Sequence[Trial]:
        """Return the trials that compute the step's result from ``arrays``.

        Every second trial of a step by rows runs from the last row to the first.
        """
        step = self.steps[-1]
        drawn = iter(n for n in self.reference.all[0].given if isinstance(n, int))
        given = {self.program.memory(t): arrays[n] for t, n in zip(self.inputs, drawn, strict=True)}
        apart = self._trial(_Blocks(self.program, given), bool(number % 2))
        if not step.merges:
            return [apart]
        return [apart, self._together(_Blocks(self.program, given))]

    def _trial(self, memory: _Blocks, backwards: bool) -> Trial:
        calls: list[Call] = []
        results: list[int] = []
        for step in self.steps:
            made = [self._call(memory, step, y) for y in range(step.height)]
            results = self._written(memory, step)
            calls += made[::-1] if backwards and not step.adds else made
        return Trial(tuple(memory.blocks), tuple(calls), tuple(results))

    def _written(self, memory: _Blocks, step: Step) -> list[int]:
        """Return the blocks that a step writes, after marking them as writable."""
        if step.row_tensor is None:
            blocks = [memory.tensor(t) for t in step.writes]
        else:
            blocks = [memory.row(step.row_tensor, y) for y in range(step.height)]
        for block in blocks:
            memory.writable(block)
        return blocks

    def _call(self, memory: _Blocks, step: Step, y: int) -> Call:
        """Return the call of a row kernel that computes row ``y`` of a tensor."""
        passed = []
        for argument in step.arguments:
            if isinstance(argument, Row):
                inside = 0 <= argument.row(y) < self.program.bands[argument.tensor].height
                passed.append(
                    memory.row(argument.tensor, argument.row(y))
                    if inside
                    else self._outside(memory, step)
                )
            elif isinstance(argument, RowNumber):
                block = Block.of(np.array([y], np.uint32), 4)
                passed.append(memory.add(block, ("number", y)))
            else:
                passed.append(self._passed(memory, argument, 1))
        return Call(symbol(self.program, step.kernels[step.variants[y]]), tuple(passed))

    def _outside(self, memory: _Blocks, step: Step) -> int:
        """Return the block that replaces a row outside of a tensor."""
        if step.outside is None:
            return NOWHERE
        array = self.program.constants[step.outside].array
        return memory.add(Block.of(array, array.dtype.itemsize), ("outside", step.outside))

    def _passed(self, memory: _Blocks, argument: Any, count: int) -> int:
        alignment = self.program.alignment_bytes
        if isinstance(argument, Data | Row):
            return memory.tensor(argument.tensor)
        if isinstance(argument, Const):
            held = argument.constant
            array, own = self.program.constants[held].array, self.program.alignment(held)
            return memory.add(Block.of(array, own), ("constant", held))
        if isinstance(argument, Scratch):
            block = Block(argument.size_bytes, alignment, writable=True)
            return memory.add(block, ("scratch", argument.place))
        return memory.add(Block.of(np.array([count], np.uint32), 4), ("count", count))

    def _together(self, memory: _Blocks) -> Trial:
        """Return a trial with one call for all rows, which are contiguous."""
        step = self.steps[-1]
        passed = [self._passed(memory, a, step.height) for a in step.arguments]
        results = [memory.tensor(t) for t in step.writes]
        for block in results:
            memory.writable(block)
        call = Call(symbol(self.program, step.kernels[0]), tuple(passed))
        return Trial(tuple(memory.blocks), (call,), tuple(results))
