"""Builds the program of an unsplit network: tensors at their places, calls in order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.compile.compiled import Source
from tvm_serenity.firmware.compile.interface import interface
from tvm_serenity.firmware.compile.program_maker import ProgramMaker, meet
from tvm_serenity.firmware.passage import Passage
from tvm_serenity.firmware.place.memory_map import MemoryMap
from tvm_serenity.firmware.program import (
    Bands,
    Data,
    Place,
    Program,
    Scratch,
    Step,
)
from tvm_serenity.firmware.select.unsplit import UnsplitKernels
from tvm_serenity.firmware.transfer import Transfer
from tvm_serenity.graph import Graph, Op, Role
from tvm_serenity.relax.read import BoundGraph


@dataclass(frozen=True)
class Assembled:
    """A program, the operators of its steps, and the region's tensor of each of its tensors."""

    program: Program
    sources: tuple[Source, ...]
    tensors: tuple[int, ...]


def assembled(
    name: str,
    module: tvm.IRModule,
    region: BoundGraph,
    graph: Graph,
    order: Sequence[int],
    placed: MemoryMap,
    kernels: UnsplitKernels,
) -> Assembled:
    """Return the program ``name`` that runs ``graph`` in ``order``, placed by ``placed``.

    ``module``: the network before quantisation, which has scales and zero points.
    """
    made = UnsplitMaker(graph, placed, kernels)
    for op in order:
        made.step(op)
    inputs = [made.tensor(t) for t in graph.inputs]
    outputs = [made.tensor(t) for t in graph.outputs]
    return program_of(made, name, module, region, inputs, outputs, placed.arena_bytes)


def program_of(
    made: "UnsplitMaker",
    name: str,
    module: tvm.IRModule,
    region: BoundGraph,
    inputs: Sequence[int],
    outputs: Sequence[int],
    arena_bytes: Mapping[str, int],
    transfers: Sequence[Transfer] = (),
) -> Assembled:
    """Return what was made as a program of these inputs and outputs, tensors of its own.

    A tensor that is in memory several times has its name in the model once, where it is given or
    returned.
    """
    graph, kernels = made.graph, made.source
    known = interface(module).of_tensors(graph.inputs, region.results)
    tensors = [graph.tensors[t] for t in made.tensors]
    outside = {*inputs, *outputs}
    program = made.finished(
        name,
        [(t.name, tuple(t.shape or ()), t.dtype) for t in tensors],
        [known.get(t) if i in outside else None for i, t in enumerate(made.tensors)],
        bands=tuple(Bands((place,)) for place in made.places),
        steps=tuple(made.steps),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        arena_bytes=arena_bytes,
        alignment_bytes=kernels.alignment,
        objects=kernels.objects,
        transfers=tuple(transfers),
    )
    return Assembled(program, tuple(made.sources), tuple(made.tensors))


class UnsplitMaker(ProgramMaker):
    """Collects tensors, constants and steps of a program."""

    def __init__(self, graph: Graph, placed: MemoryMap, kernels: UnsplitKernels) -> None:
        super().__init__()
        self.graph = graph
        self.source = kernels
        self.code = kernels.code
        self.permissions = kernels.permissions()
        self.index: dict[int, int] = {}
        self.tensors: list[int] = []
        self.places: list[Place] = []
        self.steps: list[Step] = []
        self.sources: list[Source] = []
        where = [Place(r, o) for r, o in zip(placed.regions, placed.offsets, strict=True)]
        self.place = {t: at for r, at in zip(placed.ranges, where, strict=True) for t in r.tensors}
        self.scratch = {
            r.workspace_of: Scratch(at, r.size_bytes)
            for r, at in zip(placed.ranges, where, strict=True)
            if r.workspace_of is not None
        }

    def tensor(self, tensor: int) -> int:
        """Return the tensor of the program that a tensor of the graph is."""
        if tensor not in self.index:
            root = self.graph.storage[tensor]
            if root not in self.place and tensor not in self.place:
                name = self.graph.tensors[tensor].name
                raise UnsupportedError(f"tensor {name!r}: no operator writes or reads it")
            self.index[tensor] = len(self.tensors)
            self.tensors.append(tensor)
            self.places.append(self.place.get(tensor) or self.place[root])
        return self.index[tensor]

    def step(self, op: int) -> None:
        """Add the step of an operator; a view has none."""
        described = self.graph.ops[op]
        if op not in self.code:
            return
        code = self.code[op]
        inputs = tuple(self.read(described, value) for value in self.source.data(op))
        outputs = [t for t in described.outputs if self.graph.tensors[t].size_bytes]
        writes = tuple(self.tensor(t) for t in outputs)
        added = (
            writes if described.view_of is None else ()
        )  # else the kernel overwrites an argument
        arguments = self.unsplit_call(code, inputs, added, self.scratch.get(op))
        over = self.overlapped(op, arguments, writes)
        in_place = self.is_in_place(arguments, writes)
        name = self.kernel(code.kernels[0], "in_place" if in_place else "over" if over else "")
        self.steps.append(Step((name,), arguments, writes, over=over))
        self.sources.append(Source(op, inputs))

    def read(self, op: Op, value: int | None) -> int:
        """Return the program's tensor of an argument."""
        if value is None:
            raise UnsupportedError(f"op {op.name!r}: an argument is not a single tensor")
        if self.graph.tensors[value].role is Role.CONSTANT:
            raise UnsupportedError(
                f"op {op.name!r}: its weights are function parameters; bind them to constants "
                "before the build"
            )
        return self.tensor(value)

    def is_in_place(self, arguments: Sequence[Any], writes: Sequence[int]) -> bool:
        """Return whether a result has the address of another parameter."""
        data = [a.tensor for a in arguments if isinstance(a, Data)]
        return any(
            self.places[read] == self.places[made]
            for made in writes
            if made in data
            for read in data
            if read != made
        )

    def overlapped(
        self, op: int, arguments: Sequence[Any], writes: Sequence[int]
    ) -> tuple[tuple[int, Passage], ...]:
        """Return the operands that a result overlaps, with the passage over each.

        Operands that it overwrites in place (``is_in_place``) are left out.
        """
        permitted = {self.index[t]: w for t, w in self.permissions.get(op, {}).items()}
        read = [a.tensor for a in arguments if isinstance(a, Data) and a.tensor not in writes]
        taken = {self.index[t] for t in self.graph.ops[op].in_place}
        pairs = {
            r
            for r in read
            for made in writes
            if self.meets(r, made) and not (r in taken and self.places[r] == self.places[made])
        }
        return tuple((r, permitted[r]) for r in sorted(pairs) if r in permitted)

    def meets(self, one: int, two: int) -> bool:
        """Return whether two tensors share bytes."""
        first, second = (self.graph.tensors[self.tensors[t]].size_bytes for t in (one, two))
        return meet(self.places[one], first, self.places[two], second)
