"""What firmware is made from: kernels in C, constants, and calls in order on planned memory.

A :class:`Program` knows neither TVM nor a board. A tensor consists of bands of rows. A step
computes rows of a tensor, and a call computes one band. In an unsplit network every tensor is one
band of one row, and every step runs once. ``firmware.check`` replays the calls, ``emit`` writes
them as C.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tvm_serenity.firmware.incremental import Moving
from tvm_serenity.firmware.passage import Passage
from tvm_serenity.firmware.transfer import Transfer

Array = npt.NDArray[Any]

WORD = 4
"""Bytes that a kernel may load at once."""

ARRIVAL = -1
"""The step of a call that computes nothing: a band of rows arrives and is kept."""


@dataclass(frozen=True, slots=True)
class Quantisation:
    """real = scale * (stored - zero point)."""

    scale: float
    zero_point: int


def is_vector(shape: Sequence[int]) -> bool:
    """Return whether exactly one axis is longer than 1, and none is empty."""
    return len([extent for extent in shape if extent != 1]) == 1 and 0 not in shape


@dataclass(frozen=True)
class Tensor:
    """A value the program computes or is given; ``dtype`` is numpy's name.

    ``initial`` makes an input a state: filled with that value before the first run, later with the
    output that stands at its place among the last outputs. ``labels``: of its elements, as classes.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    quantisation: Quantisation | None = None
    initial: int | None = None
    labels: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Bytes in memory."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize

    @property
    def is_vector(self) -> bool:
        """Whether exactly one axis is longer than 1: the elements may stand for classes."""
        return is_vector(self.shape)


@dataclass(frozen=True, slots=True)
class Place:
    """An offset in the arena of one memory region."""

    region: str
    offset_bytes: int


@dataclass(frozen=True, slots=True)
class Bands:
    """The places of a tensor of ``height`` rows: one place per band of ``together`` rows.

    The rows of a band are contiguous. Without places the rows are not in memory.
    """

    places: tuple[Place, ...]
    height: int = 1
    together: int = 1

    @staticmethod
    def unsplit(region: str, offset_bytes: int) -> "Bands":
        """Return the place of a tensor that is not split into rows."""
        return Bands((Place(region, offset_bytes),))


@dataclass(frozen=True, slots=True)
class Data:
    """Argument: a complete tensor, by its index."""

    tensor: int


@dataclass(frozen=True, slots=True)
class Row:
    """Argument: in the call for row y, row ``(y * step + first) // divisor`` of a tensor.

    ``listed``: if given, the row for each y. A number that is no row of the tensor means padding.
    """

    tensor: int
    step: int = 1
    first: int = 0
    divisor: int = 1
    listed: tuple[int, ...] = ()

    def row(self, y: int) -> int:
        """Return the row in the call for row ``y``; it may lie outside of the tensor."""
        if self.listed:
            return self.listed[y]
        return (y * self.step + self.first) // self.divisor


@dataclass(frozen=True, slots=True)
class Const:
    """Argument: a constant, by its index."""

    constant: int


@dataclass(frozen=True, slots=True)
class Scratch:
    """Argument: workspace during the call; ``bands``: its place in each band, if they differ."""

    place: Place
    size_bytes: int
    bands: tuple[Place, ...] = ()

    def at(self, band: int) -> Place:
        """Return its place in the call that computes band ``band``."""
        return self.bands[band] if self.bands else self.place


@dataclass(frozen=True, slots=True)
class Count:
    """Argument: how many rows that follow each other the call makes."""


@dataclass(frozen=True, slots=True)
class RowNumber:
    """Argument: the number of the row that the call makes."""


Argument = Data | Row | Const | Scratch | Count | RowNumber


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
class LibraryFile:
    """A file of the kernel library (``firmware/kernels``), for a type of inputs and of weights.

    ``shift``: a number that few files are written with.
    """

    path: str
    inputs: str = "int8"
    weight_bits: int = 8
    shift: int = 0


@dataclass(frozen=True)
class Kernel:
    """A C function ``void name(params...)``: ``body`` is what stands between its braces.

    ``support``: the files of the kernel library that it needs. ``restrict``: no two parameters
    share bytes. ``user``: the operator whose C function, the user's, it calls.
    """

    name: str
    params: tuple[Param, ...]
    body: str
    support: tuple[LibraryFile, ...] = ()
    restrict: bool = True
    user: str = ""


@dataclass(frozen=True)
class Step:
    """How a tensor is made: ``kernels[variants[y]]`` for row y, ``together`` rows a call.

    A step of whole tensors is one row. ``writes`` are the tensors that are complete after its last
    row: among the arguments, or overwritten by one that lies at their place. ``outside`` is the
    constant that stands for rows outside of a tensor, NULL without. A step that ``adds`` takes in
    rows of what it reads, one after the other; what it makes is not shown before another step has
    finished it. ``over`` are the tensors that its only result lies on in part, each with the order
    in which the kernel goes over it. A step that ``copies`` computes nothing: it copies rows from
    one memory to another.
    """

    kernels: tuple[str, ...]
    arguments: tuple[Argument, ...]
    writes: tuple[int, ...]
    variants: tuple[int, ...] = (0,)
    together: int = 1
    outside: int | None = None
    adds: bool = False
    over: tuple[tuple[int, Passage], ...] = ()
    copies: bool = False

    @property
    def height(self) -> int:
        """The number of rows."""
        return len(self.variants)

    @property
    def slots(self) -> tuple[Row, ...]:
        """The rows that it reads."""
        return tuple(
            a for a in self.arguments if isinstance(a, Row) and a.tensor not in self.writes
        )

    @property
    def moving(self) -> Scratch | None:
        """The workspace whose place differs between bands, None without."""
        return next((a for a in self.arguments if isinstance(a, Scratch) and a.bands), None)

    @property
    def row_tensor(self) -> int | None:
        """The tensor of which a call computes rows, None if it writes complete tensors."""
        rows = (a.tensor for a in self.arguments if isinstance(a, Row) and a.tensor in self.writes)
        return next(rows, None)

    @property
    def merges(self) -> bool:
        """Whether one call of the kernel computes several consecutive rows."""
        return any(isinstance(a, Count) for a in self.arguments)

    def rows(self, band: int) -> range:
        """Return the rows of band ``band``."""
        return range(band * self.together, min(self.height, (band + 1) * self.together))


@dataclass(frozen=True, slots=True)
class Fed:
    """The input ``tensor``, whose ``rows`` of ``row_bytes`` bytes arrive one by one.

    ``step`` reads the rows as they arrive; None: they are stored first (calls of ``ARRIVAL``).
    """

    tensor: int
    rows: int
    row_bytes: int
    step: int | None = None


@dataclass(frozen=True)
class Program:
    """A network ready to be written as C; ``bands`` gives every tensor its memory.

    Tensors that show the same bytes (views) have the same place. ``inputs`` are in place before
    the first call, ``outputs`` after the last. ``arena_bytes`` is the size of each region's arena,
    the first region being the preferred one. ``objects`` are compiled files (name to bytes) that
    hold kernels whose ``body`` is empty. ``fed`` is an input that is not among ``inputs``: its rows
    arrive during the run. ``sequence`` are the calls in order, step and band of each; by default
    every step once. ``copied``: constants are copied to the main memory at start. ``moving``: the
    rows that arrive are the last ones of a window that moves. ``transfers``: copies between calls,
    in the order of the calls that they precede; only where every step runs once. Bands of rows are
    copied by steps.
    """

    name: str
    kernels: tuple[Kernel, ...]
    constants: tuple[Constant, ...]
    tensors: tuple[Tensor, ...]
    bands: tuple[Bands, ...]
    steps: tuple[Step, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    arena_bytes: Mapping[str, int]
    alignment_bytes: int = 16
    objects: Mapping[str, bytes] = field(default_factory=dict)
    fed: Fed | None = None
    sequence: tuple[tuple[int, int], ...] | None = None
    copied: bool = False
    moving: Moving | None = None
    transfers: tuple[Transfer, ...] = ()

    @cached_property
    def copies(self) -> bool:
        """Whether steps copy rows from one memory to another."""
        return any(step.copies for step in self.steps)

    @property
    def transferred_bytes(self) -> int | None:
        """Bytes copied from one memory to another in a run; None for a network in one memory."""
        if not self.transfers and not self.copies:
            return None
        pairs = ((t.source, t.target) for t in self.transfers)
        between = (s for s, t in pairs if self.place(s).region != self.place(t).region)
        copied = sum(self.tensors[source].size_bytes for source in between)
        for step, band in ((self.steps[s], b) for s, b in self.calls if s != ARRIVAL):
            if step.copies:
                copied += len(step.rows(band)) * self.row_bytes(step.writes[0])
        return copied

    @property
    def windows(self) -> int:
        """Results of one run that is verified."""
        return 1 if self.moving is None else self.moving.windows

    @property
    def rows_fed(self) -> int:
        """Rows that arrive in one run that is verified."""
        if self.moving is not None:
            return self.moving.steps * self.moving.step
        return 0 if self.fed is None else self.fed.rows

    @property
    def kept_bytes(self) -> int:
        """Bytes of rows and states that are retained between two steps."""
        if self.moving is None:
            return 0
        rows = sum(kept.rows * self.row_bytes(kept.tensor) for kept in self.moving.kept)
        return rows + sum(self.tensors[state.tensor].size_bytes for state in self.moving.states)

    @property
    def steps_of_stream(self) -> dict[str, int] | None:
        """A JSON object: step and window in rows, and the retained bytes; None without a stream."""
        if self.moving is None or self.fed is None:
            return None
        return {
            "step": self.moving.step,
            "window": self.fed.rows,
            "steps_to_fill": self.moving.steps_to_fill,
            "kept_bytes": self.kept_bytes,
        }

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

    @property
    def copied_bytes(self) -> int:
        """Bytes of constants in the main memory: each begins where it is aligned."""
        if not self.copied:
            return 0
        sizes = ((c.array.nbytes, self.alignment(i)) for i, c in enumerate(self.constants))
        return sum(-(-max(size, 1) // most) * most for size, most in sizes)

    def alignment(self, constant: int) -> int:
        """Return what the address of a constant is a multiple of.

        Kernels in C need words; those that LLVM compiled, and the user's functions, as tensors do.
        """
        item = self.constants[constant].array.dtype.itemsize
        whole = bool(self.objects or self.users)
        return self.alignment_bytes if whole else min(max(item, WORD), self.alignment_bytes)

    @property
    def calls(self) -> tuple[tuple[int, int], ...]:
        """The calls in order: the step, and the band of its rows."""
        if self.sequence is not None:
            return self.sequence
        return tuple((step, 0) for step in range(len(self.steps)))

    @cached_property
    def straight(self) -> bool:
        """Whether every step is one row and runs once: the calls are a list."""
        once = len({step for step, _ in self.calls}) == len(self.calls)
        return once and self.fed is None and all(step.height == 1 for step in self.steps)

    def place(self, tensor: int) -> Place:
        """Return where a tensor begins; at the start of the arena where it is not in memory."""
        places = self.bands[tensor].places
        return places[0] if places else Place(next(iter(self.arena_bytes)), 0)

    def row_bytes(self, tensor: int) -> int:
        """Return the bytes of a row."""
        return self.tensors[tensor].size_bytes // self.bands[tensor].height

    def row_place(self, tensor: int, row: int) -> Place | None:
        """Return where a row lies, None where it is outside of the tensor."""
        bands = self.bands[tensor]
        if not 0 <= row < bands.height:
            return None
        band, left = divmod(row, bands.together)
        at = bands.places[band]
        return Place(at.region, at.offset_bytes + left * self.row_bytes(tensor))

    def memory(self, tensor: int) -> Hashable:
        """Return what is equal for tensors that show the same bytes."""
        places = self.bands[tensor].places
        return (places[0], self.tensors[tensor].size_bytes) if len(places) == 1 else tensor

    def runs(self, call: tuple[int, int]) -> Iterator[tuple[int, int]]:
        """Yield the rows of a call, first and end of those that one call of a kernel may make."""
        step, band = call
        rows = self.steps[step].rows(band)
        if self.steps[step].merges:
            yield rows.start, rows.stop
        else:
            yield from ((y, y + 1) for y in rows)

    def contiguous_runs(self, index: int, band: int) -> Iterator[tuple[int, int]]:
        """Yield the rows of a call, first and end of those that a kernel computes at once.

        They are contiguous in all tensors that the step reads and writes by rows.
        """
        step = self.steps[index]
        together = [self.bands[a.tensor].together for a in step.arguments if isinstance(a, Row)]
        for first, end in self.runs((index, band)):
            while first < end:
                stop = min([end, *(first + n - first % n for n in together)])
                yield first, stop
                first = stop
