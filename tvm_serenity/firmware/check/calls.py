"""Replay of a program's calls on a memory map, to find overwritten tensors.

The check is naive on purpose: the map has the tensor and the byte that each byte of the arenas
holds. It finds wrong placements without live ranges.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tvm_serenity.errors import CheckError
from tvm_serenity.firmware.check.passages import first_lost
from tvm_serenity.firmware.incremental import KeptRows
from tvm_serenity.firmware.lifetimes import ByteRange
from tvm_serenity.firmware.passage import Passage
from tvm_serenity.firmware.program import ARRIVAL, Data, Place, Program, Row, Scratch, Step

NOBODY = -1
MOST_STORES = 1 << 16


def check(program: Program) -> None:
    """Replay ``program``; raise :class:`CheckError` with the tensor that is overwritten.

    Each call must find the rows that it reads intact and inside of the arenas, and its workspace
    must not overlap what it reads or writes. Only kernels without ``restrict`` may run in place or
    with overlap; then no byte may be read after it is overwritten.
    """
    memory = _Memory(program)
    for number, step in enumerate(program.steps):
        for name in step.kernels:
            kernel = program.kernel.get(name)
            if kernel is None or len(kernel.params) != len(step.arguments):
                where = f"step {number} ({name})"
                raise CheckError(
                    f"{where}: the step does not have the arguments that its kernel takes"
                )
    for tensor in program.inputs:
        memory.claim(_all_of(program, tensor))
    if program.moving is not None:
        _move(program, memory)
    arrived, sums = 0, _Sums(program)
    for number, call in enumerate(program.calls):
        _copy(memory, number)
        if call[0] == ARRIVAL:
            arrived = _taken_in(program, memory, call[1], arrived)
            continue
        step = program.steps[call[0]]
        for first, end in program.runs(call):
            where = f"call {number} ({step.kernels[step.variants[first]]})"
            sums.called(call[0], first, end, where)
            _replay(memory, call[0], (first, end), where)
    _copy(memory, len(program.calls))
    for state in program.moving.states if program.moving is not None else ():
        memory.intact(_all_of(program, state.made), "the end of a step")
        memory.claim(_all_of(program, state.tensor))
    for tensor in program.outputs:
        memory.intact(_all_of(program, tensor), "the end")
    for kept in program.moving.kept if program.moving is not None else ():
        rows = _Rows(kept.tensor, kept.first + kept.shift, kept.end, whole=True)
        memory.intact(rows, "the end of a step")
        for number, _ in enumerate(kept.stores):
            memory.stored(kept, number)


def _copy(memory: "_Memory", call: int) -> None:
    """Replay the transfers before a call, or after the last one."""
    program = memory.program
    for transfer in program.transfers:
        if transfer.call == call:
            memory.intact(_all_of(program, transfer.source), f"the transfer before call {call}")
            memory.claim(_all_of(program, transfer.target))


class _Sums:
    """The number of rows added to each sum; all must be added before another step reads it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.makers = {
            tensor: index
            for index, step in enumerate(program.steps)
            for tensor in step.writes
            if step.adds
        }
        self.taken = dict.fromkeys(self.makers.values(), 0)

    def called(self, number: int, first: int, end: int, where: str) -> None:
        """Record that a step adds or computes rows ``first`` to ``end - 1``.

        Raises :class:`CheckError` if they are not the next rows, or if rows are missing.
        """
        step = self.program.steps[number]
        if step.adds:
            if first != self.taken[number]:
                raise CheckError(
                    f"{where}: adds row {first} to a sum; expected row {self.taken[number]}"
                )
            self.taken[number] = end
            return
        read = [a.tensor for a in step.arguments if isinstance(a, Data | Row)]
        for maker in {self.makers[t] for t in read if t in self.makers}:
            taken, height = self.taken[maker], self.program.steps[maker].height
            if taken != height:
                raise CheckError(f"{where}: reads a sum of {taken} rows; expected all {height}")


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows ``first`` to ``end - 1`` of a tensor; ``whole``: they must be contiguous."""

    tensor: int
    first: int
    end: int
    whole: bool = False


@dataclass(frozen=True, slots=True)
class _Span(ByteRange):
    """Bytes of a region; ``byte``: the number of the first byte."""

    byte: int = NOBODY


def _all_of(program: Program, tensor: int) -> _Rows:
    return _Rows(tensor, 0, program.bands[tensor].height, whole=True)


def _move(program: Program, memory: "_Memory") -> None:
    """Claim the rows retained from the previous step, after their move, and the new input rows."""
    assert program.fed is not None
    assert program.moving is not None
    for kept in program.moving.kept:
        memory.claim(_Rows(kept.tensor, kept.first, kept.end - kept.shift, whole=True))
        for number, _ in enumerate(kept.stores):
            memory.store(kept, number)
    for state in program.moving.states:
        memory.claim(_all_of(program, state.tensor))
    rows = program.fed.rows
    memory.claim(_Rows(program.fed.tensor, rows - program.moving.step, rows))


def _taken_in(program: Program, memory: "_Memory", band: int, arrived: int) -> int:
    """Claim a band of arriving rows; return the number of rows that have arrived."""
    if program.fed is None or band * program.bands[program.fed.tensor].together != arrived:
        raise CheckError(f"band {band} of the input arrives out of order, after {arrived} rows")
    end = min(program.fed.rows, arrived + program.bands[program.fed.tensor].together)
    memory.claim(_Rows(program.fed.tensor, arrived, end))
    return end


def _replay(memory: "_Memory", number: int, rows: tuple[int, int], where: str) -> None:
    """Replay one call of a kernel; ``rows``: the first row that it computes, and the end."""
    program, step = memory.program, memory.program.steps[number]
    fed = program.fed is not None and program.fed.step == number
    read = [] if fed else [r for r in _passed(program, step, rows) if r.tensor not in step.writes]
    made = [r for r in _passed(program, step, rows) if r.tensor in step.writes]
    named = {r.tensor for r in made}
    made += [_all_of(program, t) for t in step.writes if t not in named]
    for one in (*read, *(made if step.adds and rows[0] else [])):
        memory.intact(one, where)
    for argument in step.arguments:
        if isinstance(argument, Scratch):
            at = argument.at(rows[0] // step.together)
            memory.scratch(at, argument.size_bytes, [*read, *made], where)
    restrict = program.kernel[step.kernels[step.variants[rows[0]]]].restrict
    over = {} if restrict else dict(step.over)
    for one in made:
        beside = [r for r in read if r.tensor not in over or len(step.writes) > 1]
        memory.disjoint(one, beside, not restrict or one.tensor not in named, where)
        for lost in (r for r in read if r not in beside):
            memory.behind(one, lost, over[lost.tensor], where)
        memory.claim(one)


def _passed(program: Program, step: Step, rows: tuple[int, int]) -> list[_Rows]:
    """Return the rows that the arguments of a call point to, without padding rows."""
    found = []
    for argument in step.arguments:
        if isinstance(argument, Data):
            found.append(_all_of(program, argument.tensor))
        elif isinstance(argument, Row):
            seen = (argument.row(y) for y in range(*rows))
            inside = (r for r in seen if 0 <= r < program.bands[argument.tensor].height)
            found += [_Rows(argument.tensor, r, r + 1) for r in inside]
    return found


class _Memory:
    """The memory map: the number of the byte at each address; views share the numbers."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.owner = {r: np.full(n, NOBODY, np.int64) for r, n in program.arena_bytes.items()}
        sizes = [t.size_bytes for t in program.tensors]
        self.begins = np.cumsum([0, *sizes])
        homes: dict[object, int] = {}
        self.home = [homes.setdefault(program.memory(t), t) for t in range(len(sizes))]

    def claim(self, rows: _Rows) -> None:
        """Record that rows are written."""
        for span in self.spans(rows):
            self.bytes_of(span)[:] = np.arange(span.byte, span.byte + span.stop - span.start)

    def intact(self, rows: _Rows, where: str) -> None:
        """Raise :class:`CheckError` if a byte of rows is overwritten."""
        for span in self.spans(rows):
            found = self.bytes_of(span)
            wrong = found != np.arange(span.byte, span.byte + span.stop - span.start)
            if wrong.any():
                by = ", ".join(self.names(found[wrong], rows.tensor)) or "?"
                raise CheckError(f"{where}: {self.named(rows)} is overwritten by {by}")

    def store(self, kept: KeptRows, number: int) -> None:
        """Record the retained rows of phase ``number`` in their store."""
        span = self.store_of(kept, number)
        self.bytes_of(span)[:] = span.byte

    def stored(self, kept: KeptRows, number: int) -> None:
        """Raise :class:`CheckError` if the store of phase ``number`` is overwritten."""
        span = self.store_of(kept, number)
        found = self.bytes_of(span)
        if (found != span.byte).any():
            by = ", ".join(self.names(found, kept.tensor)) or "another phase"
            name = self.program.tensors[kept.tensor].name
            raise CheckError(f"phase {number + 1} of tensor {name!r} is overwritten by {by}")

    def store_of(self, kept: KeptRows, number: int) -> _Span:
        """Return the span of a store; the numbers of stores are negative, below all others."""
        place = self.program.row_place(kept.tensor, kept.first)
        assert place is not None
        size = (kept.end - kept.first - kept.shift) * self.program.row_bytes(kept.tensor)
        at, most = kept.stores[number], self.program.arena_bytes[place.region]
        if not 0 <= at <= at + size <= most:
            name = self.program.tensors[kept.tensor].name
            raise CheckError(
                f"phase {number + 1} of tensor {name!r}: bytes {at} to {at + size} are "
                f"outside of the arena of {most} bytes"
            )
        return _Span(place.region, at, at + size, -2 - (kept.tensor * MOST_STORES + number))

    def disjoint(self, made: _Rows, read: Sequence[_Rows], in_place: bool, where: str) -> None:
        """Raise :class:`CheckError` if a result shares bytes with what its call reads.

        In place is allowed if both are at the same address and the kernel expects it.
        """
        for one in read:
            if one.tensor == made.tensor:
                continue
            exact = in_place and made.whole and self.home[one.tensor] == self.home[made.tensor]
            for a in self.spans(made):
                if not exact and any(a.meets(b) for b in self.spans(one)):
                    name = self.program.tensors[made.tensor].name
                    raise CheckError(f"{where}: {self.named(one)} is overwritten by {name!r}")

    def behind(self, made: _Rows, read: _Rows, windows: Passage, where: str) -> None:
        """Raise :class:`CheckError` if a result overlaps bytes that its call reads later."""
        (a,), (b,) = self.spans(made), self.spans(read)
        if not a.meets(b):
            return
        name = self.program.tensors[made.tensor].name
        sizes = (windows.height * windows.width * windows.bytes, windows.out_size)
        if sizes != (b.stop - b.start, a.stop - a.start):
            raise CheckError(
                f"{where}: the passage of {name!r} has other sizes than {self.named(read)}"
            )
        lost = first_lost(windows, a.start - b.start)
        if lost is not None:
            byte = f"byte {lost} of {self.named(read)}"
            raise CheckError(f"{where}: {byte} is read after {name!r} overwrites it")

    def scratch(self, at: Place, size_bytes: int, touched: Sequence[_Rows], where: str) -> None:
        """Overwrite the workspace of a call; raise :class:`CheckError` if it meets its tensors."""
        span = _Span(at.region, at.offset_bytes, at.offset_bytes + size_bytes)
        if not 0 <= span.start <= span.stop <= self.program.arena_bytes[at.region]:
            raise CheckError(f"{where}: its workspace is outside of the arena")
        if span.start % self.program.alignment_bytes:
            raise CheckError(
                f"{where}: its workspace is not aligned to {self.program.alignment_bytes} bytes"
            )
        for rows in touched:
            if any(span.meets(other) for other in self.spans(rows)):
                raise CheckError(f"{where}: its workspace overlaps {self.named(rows)}")
        self.bytes_of(span)[:] = NOBODY

    def spans(self, rows: _Rows) -> Iterator[_Span]:
        """Yield the spans of rows, band by band; raise :class:`CheckError` outside of the arena."""
        program, bands = self.program, self.program.bands[rows.tensor]
        width, start = program.row_bytes(rows.tensor), rows.first
        before: _Span | None = None
        while start < rows.end:
            place = program.row_place(rows.tensor, start) if bands.places else None
            if place is None:
                raise CheckError(f"{self.named(rows)} has no place in memory")
            end = min(rows.end, (start // bands.together + 1) * bands.together)
            byte = int(self.begins[self.home[rows.tensor]]) + start * width
            stop = place.offset_bytes + (end - start) * width
            span = _Span(place.region, place.offset_bytes, stop, byte)
            if not 0 <= span.start <= span.stop <= program.arena_bytes[place.region]:
                raise CheckError(f"{self.named(rows)}: outside of the arena in {place.region}")
            if span.start % np.dtype(program.tensors[rows.tensor].dtype).itemsize:
                raise CheckError(f"{self.named(rows)}: is not aligned")
            apart = before and (before.region, before.stop) != (span.region, span.start)
            if rows.whole and apart:
                raise CheckError(f"{self.named(rows)}: its rows are not contiguous")
            yield span
            before, start = span, end

    def bytes_of(self, span: _Span) -> npt.NDArray[np.int64]:
        """Return the numbers of the bytes in a span."""
        return self.owner[span.region][span.start : span.stop]

    def named(self, rows: _Rows) -> str:
        """Return the name of a tensor, with the row if it has several."""
        height = self.program.bands[rows.tensor].height
        row = f"row {rows.first} of " if height > 1 and not rows.whole else ""
        return f"{row}tensor {self.program.tensors[rows.tensor].name!r}"

    def names(self, found: npt.NDArray[np.int64], tensor: int) -> list[str]:
        """Return the names of the tensors of bytes; ``tensor`` only if there is no other."""
        known = np.unique(found[found >= 0])
        at = np.unique(np.searchsorted(self.begins, known, "right") - 1)
        others = [int(t) for t in at if int(t) != self.home[tensor]] or [int(t) for t in at]
        return [self.program.tensors[t].name for t in others]
