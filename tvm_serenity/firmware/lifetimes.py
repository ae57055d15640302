"""When each tensor of a program with transfers is in memory, and what happens in between.

A program of unsplit tensors has events, and lifetimes of tensors. A program in bands has calls, and
lifetimes of bytes, in which rows of several features lie one after the other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tvm_serenity.firmware.program import Data, Program, Row, Scratch, Step
from tvm_serenity.firmware.transfer import Transfer

WHOLE_RUN = 2**31
"""The event until which outputs, and from whose negative on inputs, are in memory."""


@dataclass(frozen=True, slots=True)
class Event:
    """What happens between two states of the memories: a transfer, or else a call."""

    call: int
    transfer: Transfer | None = None


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes ``start`` to before ``stop`` of a region's arena."""

    region: str
    start: int
    stop: int

    def meets(self, other: "ByteRange") -> bool:
        """Whether both have a byte in common."""
        inside = self.start < other.stop and other.start < self.stop
        return inside and self.region == other.region


def events(program: Program) -> list[Event]:
    """Return transfers and calls in the order in which they happen."""
    waiting = list(program.transfers)
    found = []
    for call in range(len(program.calls) + 1):
        while waiting and waiting[0].call == call:
            found.append(Event(call, waiting.pop(0)))
        if call < len(program.calls):
            found.append(Event(call))
    assert not waiting, "transfers are not in the order of their calls"
    return found


def touched(program: Program, event: Event) -> tuple[list[int], list[int]]:
    """Return the tensors that an event reads, and those that it writes."""
    if event.transfer is not None:
        return [event.transfer.source], [event.transfer.target]
    step = program.steps[program.calls[event.call][0]]
    passed = [a.tensor for a in step.arguments if isinstance(a, Data)]
    return [t for t in passed if t not in step.writes], list(step.writes)


def bytes_of(program: Program, tensor: int) -> ByteRange:
    """Return where an unsplit tensor is."""
    place, size = program.place(tensor), program.tensors[tensor].size_bytes
    return ByteRange(place.region, place.offset_bytes, place.offset_bytes + size)


def scratch_of(program: Program, event: Event) -> Iterator[ByteRange]:
    """Yield the workspaces of an event."""
    if event.transfer is None:
        for argument in program.steps[program.calls[event.call][0]].arguments:
            if isinstance(argument, Scratch):
                at = argument.place
                stop = at.offset_bytes + argument.size_bytes
                yield ByteRange(at.region, at.offset_bytes, stop)


@dataclass(frozen=True)
class Lifetimes:
    """The first and last event that touches the bytes of each tensor, by its index."""

    first: dict[int, int]
    last: dict[int, int]

    @staticmethod
    def of(program: Program, happened: list[Event]) -> "Lifetimes":
        """Return the lifetimes of all tensors that are given or written.

        Inputs are there before the first event, outputs after the last. What reads a view reads the
        tensor that was written there.
        """
        first = dict.fromkeys(program.inputs, -WHOLE_RUN)
        last = dict.fromkeys(program.inputs, -1)
        holds = {bytes_of(program, tensor): tensor for tensor in program.inputs}
        for number, event in enumerate(happened):
            read, written = touched(program, event)
            for tensor in read:
                last[holds[bytes_of(program, tensor)]] = number
            for tensor in written:
                holds[bytes_of(program, tensor)] = tensor
                first.setdefault(tensor, number)
                last[tensor] = number
        for tensor in program.outputs:
            last[holds[bytes_of(program, tensor)]] = WHOLE_RUN
        return Lifetimes(first, last)

    def begin(self, number: int) -> list[int]:
        """Return the tensors that event ``number`` is the first to touch."""
        return [tensor for tensor, event in self.first.items() if event == number]

    def end(self, program: Program, number: int) -> list[int]:
        """Return the tensors that are dead after event ``number``, none of whose bytes are live."""
        ended = [tensor for tensor, event in self.last.items() if event == number]
        live = [t for t, event in self.first.items() if event <= number < self.last[t]]
        taken = [bytes_of(program, t) for t in live]
        return [t for t in ended if not any(bytes_of(program, t).meets(one) for one in taken)]


@dataclass(frozen=True, slots=True)
class Hold:
    """Bytes that hold rows, or are workspace, from call ``first`` to call ``last``, both included.

    Inputs are there before the first call, outputs after the last. ``replaced``: the last call also
    writes the bytes, so that they hold something else after it.
    """

    where: ByteRange
    first: int
    last: int
    replaced: bool


def rows_touched(program: Program, step: Step, y: int) -> Iterator[tuple[int, int]]:
    """Yield tensor and row of all that a step in bands touches for row ``y``."""
    named = set[int]()
    for argument in step.arguments:
        if isinstance(argument, Row):
            named.add(argument.tensor)
            yield argument.tensor, argument.row(y)
        elif isinstance(argument, Data):
            named.add(argument.tensor)
            for row in range(program.bands[argument.tensor].height):
                yield argument.tensor, row
    for tensor in set(step.writes) - named:
        for row in range(program.bands[tensor].height):
            yield tensor, row


def holds(program: Program) -> list[Hold]:
    """Return when the bytes of a program in bands hold something, from its calls and places alone.

    Bytes hold rows from the call that writes them to the last call that reads them before they are
    written again. A sum is held while rows are added to it.
    """
    memory = {region: _Bytes(region, size) for region, size in program.arena_bytes.items()}
    for tensor in program.inputs:
        for one in _whole(program, tensor):
            memory[one.region].write(one, -WHOLE_RUN)
    for number, (index, band) in enumerate(program.calls):
        step = program.steps[index]
        read, made = set[ByteRange](), set[ByteRange]()
        for y in step.rows(band):
            for tensor, row in rows_touched(program, step, y):
                at = program.row_place(tensor, row)
                if at is not None:
                    stop = at.offset_bytes + program.row_bytes(tensor)
                    is_made = tensor in step.writes
                    (made if is_made else read).add(ByteRange(at.region, at.offset_bytes, stop))
        for argument in step.arguments:
            if isinstance(argument, Scratch):
                at = argument.at(band)
                stop = at.offset_bytes + argument.size_bytes
                made.add(ByteRange(at.region, at.offset_bytes, stop))
        for one in read:
            memory[one.region].read(one, number)
        for one in made:
            more = step.adds and memory[one.region].holds(one)
            (memory[one.region].read if more else memory[one.region].write)(one, number)
    for tensor in program.outputs:
        for one in _whole(program, tensor):
            memory[one.region].read(one, WHOLE_RUN)
    for found in memory.values():
        found.write(ByteRange(found.region, 0, len(found.first)), WHOLE_RUN)
    return [hold for found in memory.values() for hold in found.ended]


def _whole(program: Program, tensor: int) -> Iterator[ByteRange]:
    """Yield where the rows of a tensor are."""
    for row in range(program.bands[tensor].height):
        at = program.row_place(tensor, row)
        if at is not None:
            stop = at.offset_bytes + program.row_bytes(tensor)
            yield ByteRange(at.region, at.offset_bytes, stop)


class _Bytes:
    """For each byte of an arena the call that wrote it and the last that touched it since."""

    def __init__(self, region: str, size_bytes: int) -> None:
        self.region, self.ended = region, list[Hold]()
        self.first = np.zeros(size_bytes, np.int64)
        self.last = np.full(size_bytes, -WHOLE_RUN - 1, np.int64)

    def holds(self, one: ByteRange) -> bool:
        """Return whether all bytes have been written."""
        return bool((self.last[one.start : one.stop] >= -WHOLE_RUN).all())

    def read(self, one: ByteRange, call: int) -> None:
        """A call reads what the bytes hold."""
        self.last[one.start : one.stop] = call

    def write(self, one: ByteRange, call: int) -> None:
        """What the bytes held has ended, and a call writes them."""
        first, last = (of[one.start : one.stop] for of in (self.first, self.last))
        differs = np.flatnonzero((np.diff(first) != 0) | (np.diff(last) != 0)) + 1
        edges: Sequence[int] = [0, *differs.tolist(), one.stop - one.start]
        for start, stop in pairwise(edges):
            if stop > start and last[start] >= -WHOLE_RUN:
                where = ByteRange(self.region, one.start + start, one.start + stop)
                begun, ended = int(first[start]), int(last[start])
                self.ended.append(Hold(where, begun, ended, ended == call))
        first[:], last[:] = call, call
