"""What firmware is made from: kernels in C, constants, and calls in order on planned memory.

A :class:`Program` knows neither TVM nor a board. ``check`` is naive on purpose: it replays the
steps on a map of which tensor owns each byte, so a plan with an overlap is found without trusting
live ranges.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import CheckError

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Quantisation:
    """real = scale * (stored - zero point)."""

    scale: float
    zero_point: int


@dataclass(frozen=True)
class Tensor:
    """A value the program computes or is given; ``dtype`` is numpy's name.

    ``initial`` makes an input a state: filled with that value before the first run, later with the
    output that stands at its place among the last outputs.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    quantisation: Quantisation | None = None
    initial: int | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes in memory."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, slots=True)
class Place:
    """An offset in the arena of one memory region."""

    region: str
    offset_bytes: int


@dataclass(frozen=True, slots=True)
class Data:
    """Argument: a tensor, by its index."""

    tensor: int


@dataclass(frozen=True, slots=True)
class Const:
    """Argument: a constant, by its index."""

    constant: int


@dataclass(frozen=True, slots=True)
class Scratch:
    """Argument: memory for the duration of the step."""

    place: Place
    size_bytes: int


Argument = Data | Const | Scratch


@dataclass(frozen=True)
class Constant:
    """A weight, table or other constant: kept in flash."""

    name: str
    array: Array


@dataclass(frozen=True)
class Param:
    """A kernel's parameter: pointer to ``dtype``; ``readonly`` makes it ``const``."""

    name: str
    dtype: str
    readonly: bool


@dataclass(frozen=True)
class Kernel:
    """A C function ``void name(params...)``: ``body`` is what stands between its braces.

    ``support`` names the files of the kernel library that it needs
    (``tvm_serenity/firmware/library``). ``restrict``: no two parameters share bytes. ``user``: the
    operator whose C function, the user's, it calls.
    """

    name: str
    params: tuple[Param, ...]
    body: str
    support: tuple[str, ...] = ()
    restrict: bool = True
    user: str = ""


@dataclass(frozen=True)
class Step:
    """One call; ``writes`` are the tensors that are complete afterwards."""

    kernel: str
    arguments: tuple[Argument, ...]
    writes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Fed:
    """An input whose ``rows`` of ``row_bytes`` each arrive one by one: tensor ``tensor``."""

    tensor: int
    rows: int
    row_bytes: int


@dataclass(frozen=True)
class Program:
    """A network ready to be written as C; ``places`` gives every tensor its memory.

    Tensors that show the same bytes (views) have the same place. ``inputs`` are in place before
    the first step, ``outputs`` after the last. ``arena_bytes`` is the size of each region's arena,
    the first region being the preferred one. ``objects`` are compiled files (name to bytes) that
    hold kernels whose ``body`` is empty. ``fed`` is an input that is not among ``inputs``: its rows
    arrive during the run.
    """

    name: str
    kernels: tuple[Kernel, ...]
    constants: tuple[Constant, ...]
    tensors: tuple[Tensor, ...]
    places: tuple[Place, ...]
    steps: tuple[Step, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    arena_bytes: Mapping[str, int]
    alignment_bytes: int = 16
    objects: Mapping[str, bytes] = field(default_factory=dict)
    fed: Fed | None = None

    @property
    def given(self) -> tuple[int, ...]:
        """All that is given to the network: what is fed first, then ``inputs``."""
        return (*([] if self.fed is None else [self.fed.tensor]), *self.inputs)

    @cached_property
    def kernel(self) -> Mapping[str, Kernel]:
        """Kernels by name."""
        return {k.name: k for k in self.kernels}

    @property
    def users(self) -> tuple[str, ...]:
        """The operators that the user computes, by their names in the model."""
        return tuple(sorted({k.user for k in self.kernels} - {""}))

    @property
    def constant_bytes(self) -> int:
        """Bytes of constants in flash."""
        return sum(c.array.nbytes for c in self.constants)


def check(program: Program) -> None:
    """Replay ``program`` on a map of owners; :class:`CheckError` names what is not intact.

    Every step must find the tensors it reads whole, inside of their arenas, and its scratch must
    lie on nothing it reads or writes. Only kernels without ``restrict`` work in place.
    """
    owner = {r: np.full(size, -1, np.int64) for r, size in program.arena_bytes.items()}
    for tensor in program.inputs:
        _claim(program, owner, tensor)
    for number, step in enumerate(program.steps):
        where = f"step {number} ({step.kernel})"
        kernel = program.kernel.get(step.kernel)
        if kernel is None or len(kernel.params) != len(step.arguments):
            raise CheckError(f"{where}: does not fit the parameters of its kernel")
        read = [a.tensor for a in step.arguments if isinstance(a, Data)]
        for tensor in read:
            if tensor not in step.writes:
                _intact(program, owner, tensor, where)
        for argument in step.arguments:
            if isinstance(argument, Scratch):
                _scratch(program, owner, argument, read, where)
        for tensor in step.writes:
            _apart(program, tensor, read, kernel.restrict, where)
            _claim(program, owner, tensor)
    for tensor in program.outputs:
        _intact(program, owner, tensor, "the end")


def _span(program: Program, tensor: int) -> tuple[str, slice]:
    place, size = program.places[tensor], program.tensors[tensor].size_bytes
    if place.offset_bytes < 0 or place.offset_bytes + size > program.arena_bytes[place.region]:
        name = program.tensors[tensor].name
        raise CheckError(f"tensor {name!r}: outside of the arena in {place.region}")
    return place.region, slice(place.offset_bytes, place.offset_bytes + size)


def _home(program: Program, tensor: int) -> int:
    """One number for all tensors that show the same bytes: the first at that place and size."""
    place, size = program.places[tensor], program.tensors[tensor].size_bytes
    same = (
        i
        for i, p in enumerate(program.places)
        if p == place and program.tensors[i].size_bytes == size
    )
    return next(same)


def _claim(program: Program, owner: dict[str, npt.NDArray[np.int64]], tensor: int) -> None:
    region, span = _span(program, tensor)
    owner[region][span] = tensor


def _intact(
    program: Program, owner: dict[str, npt.NDArray[np.int64]], tensor: int, where: str
) -> None:
    region, span = _span(program, tensor)
    found = np.unique(owner[region][span])
    if found.size > 1 or (found.size and not _shows(program, int(found[0]), tensor)):
        others = [program.tensors[int(i)].name for i in found if i >= 0 and int(i) != tensor]
        name = program.tensors[tensor].name
        raise CheckError(f"{where}: tensor {name!r} is overwritten by {', '.join(others) or '?'}")


def _apart(program: Program, made: int, read: list[int], restrict: bool, where: str) -> None:
    """A result may lie on what its step reads only exactly, and if the kernel expects it.

    A kernel that overwrites an argument is passed that argument alone.
    """
    region, span = _span(program, made)
    for tensor in read:
        other_region, other = _span(program, tensor)
        if tensor == made or other_region != region:
            continue
        exact = _home(program, tensor) == _home(program, made)
        exact = exact and (not restrict or made not in read)
        if span.start < other.stop and other.start < span.stop and not exact:
            names = program.tensors[made].name, program.tensors[tensor].name
            raise CheckError(f"{where}: tensor {names[1]!r} is overwritten by {names[0]!r}")


def _shows(program: Program, writer: int, tensor: int) -> bool:
    return writer == tensor or (writer >= 0 and _home(program, writer) == _home(program, tensor))


def _scratch(
    program: Program,
    owner: dict[str, npt.NDArray[np.int64]],
    scratch: Scratch,
    touched: list[int],
    where: str,
) -> None:
    start, stop = scratch.place.offset_bytes, scratch.place.offset_bytes + scratch.size_bytes
    if start < 0 or stop > program.arena_bytes[scratch.place.region]:
        raise CheckError(f"{where}: its scratch is outside of the arena")
    for tensor in touched:
        region, span = _span(program, tensor)
        if region == scratch.place.region and start < span.stop and span.start < stop:
            name = program.tensors[tensor].name
            raise CheckError(f"{where}: its scratch overlaps tensor {name!r}")
    owner[scratch.place.region][start:stop] = -1
