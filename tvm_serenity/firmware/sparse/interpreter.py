"""The program of a sparse network: one kernel that executes the words of an inference."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvm_serenity.boards import Board
from tvm_serenity.firmware.place.memory_map import MemoryMap, place, rooms
from tvm_serenity.firmware.program import (
    Argument,
    Bands,
    Const,
    Constant,
    Data,
    Kernel,
    Param,
    Place,
    Program,
    Scratch,
    Step,
    Tensor,
)
from tvm_serenity.firmware.sparse.words import SLOT_BITS, Inference, Operation
from tvm_serenity.memory import LiveRange
from tvm_serenity.plan import Buffer, plan

IOS = "ios"
"""The output with the numbers of reads and writes of an inference."""


@dataclass(frozen=True)
class PlacedProgram:
    """The program of an inference, and the place of its tensors and memories."""

    program: Program
    placed: MemoryMap


@dataclass(frozen=True)
class _Memory:
    """An array that the kernel works on: a tensor, or its fast and slow memory."""

    name: str
    size: int
    dtype: str = "float32"

    @property
    def size_bytes(self) -> int:
        """Bytes in the arena; empty arrays keep an element, so that each has an address."""
        return max(self.size, 1) * np.dtype(self.dtype).itemsize


def program(
    name: str,
    inference: Inference,
    sizes: tuple[int, int],
    board: Board,
    stack_bytes: int,
    counted: bool,
) -> PlacedProgram:
    """Return the program ``name``; ``sizes``: the numbers of inputs and outputs.

    ``counted``: a second output, ``ios``, has the reads and writes that the kernel executed.
    """
    tensors = [_Memory("input", sizes[0]), _Memory("output", sizes[1])]
    tensors += [_Memory(IOS, 2, "int32")] if counted else []
    memories = [_Memory("fast", inference.slots), _Memory("spilled", inference.spilled)]
    placed = _placed([*tensors, *memories], len(tensors), board, stack_bytes)
    places = [Place(r, o) for r, o in zip(placed.regions, placed.offsets, strict=True)]
    constants = [
        Constant("words", inference.words),
        Constant("weights", inference.weights),
        Constant("biases", inference.biases),
    ]
    arguments: list[Argument] = [Data(t) for t in range(len(tensors))]
    arguments += [
        Scratch(at, one.size_bytes)
        for one, at in zip(memories, places[len(tensors) :], strict=True)
    ]
    arguments += [Const(i) for i in range(len(constants))]
    outputs = tuple(range(1, len(tensors)))
    made = Program(
        name=name,
        kernels=(_kernel(tensors, counted),),
        constants=tuple(constants),
        tensors=tuple(Tensor(one.name, (one.size,), one.dtype) for one in tensors),
        bands=tuple(Bands((at,)) for at in places[: len(tensors)]),
        steps=(Step((KERNEL,), tuple(arguments), outputs),),
        inputs=(0,),
        outputs=outputs,
        arena_bytes=placed.arena_bytes,
        alignment_bytes=board.core.alignment_bytes,
    )
    return PlacedProgram(made, placed)


def _placed(arrays: Sequence[_Memory], tensors: int, board: Board, stack_bytes: int) -> MemoryMap:
    """Return the places of all arrays, which live as long as the inference."""
    alignment = board.core.alignment_bytes
    ranges = [
        LiveRange(one.name, one.size_bytes, 0, 1, (i,) if i < tensors else ())
        for i, one in enumerate(arrays)
    ]
    whole = plan([Buffer(r.name, r.start, r.stop, r.size_bytes, alignment) for r in ranges])
    return place(ranges, whole, rooms(board, stack_bytes), alignment)


KERNEL = "sparse_inference"


def _kernel(tensors: Sequence[_Memory], counted: bool) -> Kernel:
    params = [Param(one.name, one.dtype, one is tensors[0]) for one in tensors]
    params += [Param("fast", "float32", False), Param("spilled", "float32", False)]
    params += [Param("word", "uint16", True), Param("weight", "float32", True)]
    params += [Param("bias", "float32", True)]
    return Kernel(KERNEL, tuple(params), body(counted))


def body(counted: bool) -> str:
    """Return the C of the interpreter; ``counted``: it counts what it reads and writes."""
    counts = {"reads": "1u", "run": "count", "writes": "1u"}
    lines = {
        word: f"        {'writes' if word == 'writes' else 'reads'} += {by};\n" if counted else ""
        for word, by in counts.items()
    }
    moves = {
        Operation.INPUT: ("fast[slot] = input[*word++];", "reads"),
        Operation.BIAS: ("fast[slot] = *bias++;", "reads"),
        Operation.SPILLED: ("fast[slot] = spilled[*word++];", "reads"),
        Operation.OUTPUT: ("fast[slot] = output[*word++];", "reads"),
        Operation.SPILL: ("spilled[*word++] = fast[slot];", "writes"),
        Operation.STORE: ("output[*word++] = fast[slot];", "writes"),
    }
    cases = "".join(
        f"    case {operation}u: /* {operation.name} */\n        {line}\n{lines[kind]}"
        "        break;\n"
        for operation, (line, kind) in moves.items()
    )
    begin = "uint32_t reads = 0;\nuint32_t writes = 0;\n" if counted else ""
    end = (
        f"        {IOS}[0] = (int32_t)reads;\n        {IOS}[1] = (int32_t)writes;\n"
        if counted
        else ""
    )
    return f"""{begin}for (;;) {{
    const uint32_t operation = (uint32_t)*word >> {SLOT_BITS}u;
    const uint32_t slot = *word++ & {(1 << SLOT_BITS) - 1}u;
    switch (operation) {{
    case {Operation.ONE}u: /* ONE */
        fast[slot] += *weight++ * fast[*word++];
{lines["reads"]}        break;
    case {Operation.INTO}u: {{ /* INTO */
        const uint32_t count = *word++;
        float sum = fast[slot];
        for (const uint16_t *const last = word + count; word != last;) {{
            sum += *weight++ * fast[*word++];
        }}
        fast[slot] = sum;
{lines["run"]}        break;
    }}
    case {Operation.FROM}u: {{ /* FROM */
        const uint32_t count = *word++;
        const float source = fast[slot];
        for (const uint16_t *const last = word + count; word != last;) {{
            fast[*word++] += *weight++ * source;
        }}
{lines["run"]}        break;
    }}
    case {Operation.RELU}u: /* RELU */
        fast[slot] = fast[slot] < 0.0f ? 0.0f : fast[slot];
        break;
{cases}    default: /* END */
{end}        return;
    }}
}}"""
