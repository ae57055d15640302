"""When each tensor of a program with transfers is in memory, and what happens in between."""

from collections.abc import Iterator
from dataclasses import dataclass

from tvm_serenity.firmware.program import Data, Program, Scratch
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
