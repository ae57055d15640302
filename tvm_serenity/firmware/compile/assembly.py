"""A program put together: tensors at their places, constants once, calls in order."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import tvm

from tvm_serenity.errors import UnsupportedError
from tvm_serenity.firmware.compile.compiled import Source
from tvm_serenity.firmware.compile.constants import Constants
from tvm_serenity.firmware.compile.interface import Known, interface, named
from tvm_serenity.firmware.passage import Passage
from tvm_serenity.firmware.place.memory_map import Placed
from tvm_serenity.firmware.program import (
    Bands,
    Const,
    Data,
    Kernel,
    Place,
    Program,
    Scratch,
    Step,
    Tensor,
)
from tvm_serenity.firmware.select.unsplit import UnsplitKernels
from tvm_serenity.graph import Graph, Role
from tvm_serenity.relax.read import BoundGraph


@dataclass(frozen=True)
class Assembled:
    """A program, what each of its steps computes, and the region's tensor of each of its own."""

    program: Program
    sources: tuple[Source, ...]
    tensors: tuple[int, ...]


def assembled(
    name: str,
    module: tvm.IRModule,
    region: BoundGraph,
    graph: Graph,
    order: Sequence[int],
    placed: Placed,
    kernels: UnsplitKernels,
) -> Assembled:
    """Return the program ``name`` that runs ``graph`` in ``order`` at the places of ``placed``.

    ``module`` is the network before quantisation: it knows scales and zero points.
    """
    made = _Assembly(region, graph, placed, kernels)
    for op in order:
        made.step(op)
    inputs = [made.tensor(t) for t in graph.inputs]
    outputs = [made.tensor(t) for t in graph.outputs]
    known = interface(module).of_tensors(graph.inputs, region.results)
    program = Program(
        name,
        tuple(made.kernels.values()),
        tuple(made.constants.all),
        tuple(made.described(known)),
        tuple(Bands((place,)) for place in made.places),
        tuple(made.steps),
        tuple(inputs),
        tuple(outputs),
        placed.arena_bytes,
        kernels.alignment,
        kernels.objects,
    )
    return Assembled(program, tuple(made.sources), tuple(made.tensors))


class _Assembly:
    """Collects tensors, constants and steps of a program."""

    def __init__(
        self, region: BoundGraph, graph: Graph, placed: Placed, kernels: UnsplitKernels
    ) -> None:
        self.region = region
        self.graph = graph
        self.source = kernels
        self.code = kernels.code
        self.permissions = kernels.permissions()
        self.kernels: dict[str, Kernel] = {}
        self.constants = Constants()
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
        if tensor not in self.index:
            root = self.graph.storage[tensor]
            if root not in self.place and tensor not in self.place:
                name = self.graph.tensors[tensor].name
                raise UnsupportedError(f"tensor {name!r}: nothing makes or reads it")
            self.index[tensor] = len(self.tensors)
            self.tensors.append(tensor)
            self.places.append(self.place.get(tensor) or self.place[root])
        return self.index[tensor]

    def step(self, op: int) -> None:
        described = self.graph.ops[op]
        if op not in self.code:
            return
        code = self.code[op]
        arguments: list[Any] = [Const(self.constants.number(array)) for array in code.constants]
        for position, value in zip(code.data, self.source.data(op), strict=True):
            if value is None:
                raise UnsupportedError(f"op {described.name!r}: an argument is not one tensor")
            if self.graph.tensors[value].role is Role.CONSTANT:
                raise UnsupportedError(f"op {described.name!r}: weights are parameters; bind them")
            arguments.insert(position, Data(self.tensor(value)))
        inputs = tuple(a.tensor for a in arguments if isinstance(a, Data))
        outputs = [t for t in described.outputs if self.graph.tensors[t].size_bytes]
        writes = tuple(self.tensor(t) for t in outputs)
        if described.view_of is None:  # else the result is an argument, overwritten
            arguments += [Data(t) for t in writes]
        if op in self.scratch:
            arguments.append(self.scratch[op])
        (kernel,) = code.kernels
        if self.is_in_place(arguments, writes):
            kernel = replace(kernel, name=f"{kernel.name}_in_place", restrict=False)
        over = self.lying_on(op, arguments, writes)
        if over and kernel.restrict:
            kernel = replace(kernel, name=f"{kernel.name}_over", restrict=False)
        self.kernels.setdefault(kernel.name, kernel)
        self.steps.append(Step((kernel.name,), tuple(arguments), writes, over=over))
        self.sources.append(Source(op, inputs))

    def is_in_place(self, arguments: Sequence[Any], writes: Sequence[int]) -> bool:
        """Whether a result that is a parameter lies on another one."""
        data = [a.tensor for a in arguments if isinstance(a, Data)]
        return any(
            self.places[read] == self.places[made]
            for made in writes
            if made in data
            for read in data
            if read != made
        )

    def lying_on(
        self, op: int, arguments: Sequence[Any], writes: Sequence[int]
    ) -> tuple[tuple[int, Passage], ...]:
        """What a result lies on in part, and how the kernel goes over it.

        An operand that it overwrites element by element (``is_in_place``) is not among these.
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
        """Whether two tensors share bytes."""
        a, b = self.places[one], self.places[two]
        first, second = (self.graph.tensors[self.tensors[t]].size_bytes for t in (one, two))
        ends = (a.offset_bytes + first, b.offset_bytes + second)
        return a.region == b.region and b.offset_bytes < ends[0] and a.offset_bytes < ends[1]

    def described(self, known: dict[int, Known]) -> list[Tensor]:
        """The program's tensors with names that C accepts, each once."""
        tensors = [self.graph.tensors[t] for t in self.tensors]
        facts = [known.get(t) for t in self.tensors]
        return named([(t.name, tuple(t.shape or ()), t.dtype) for t in tensors], facts)
