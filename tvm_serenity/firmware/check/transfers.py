"""A program's transfers replayed: which tensor each byte of both memories holds at each event.

The check of all programs takes tensors of one size at one place for views of each other. With
transfers several tensors have the same place one after the other, so here each has bytes of its
own: a tensor is whole until a byte of it is written for another tensor, and views hold what the
tensor holds that was written.
"""

from tvm_serenity.errors import CheckError
from tvm_serenity.firmware.lifetimes import (
    ByteRange,
    Event,
    bytes_of,
    events,
    rows_touched,
    scratch_of,
    touched,
)
from tvm_serenity.firmware.program import Program


def check_program(program: Program, copied_bytes: int, slow_bytes: int) -> None:
    """Raise :class:`CheckError` unless each event finds whole what it reads.

    ``copied_bytes``: what the transfer plan copies between both memories. ``slow_bytes``: of what
    its operators access in slow memory, each tensor and workspace of an operator once.
    """
    _compare_copies(program, copied_bytes)
    _compare_accesses(program, _in_slow_memory(program), slow_bytes)
    memory = _Memory(program)
    for tensor in program.inputs:
        memory.write(tensor)
    for event in events(program):
        memory.replay(event)
    for tensor in program.outputs:
        memory.read(tensor, f"{program.name}: the end")


def check_bands(program: Program, copied_bytes: int, slow_bytes: int) -> None:
    """Raise :class:`CheckError` unless a program in bands copies and accesses what its plan says.

    The bytes are those of :func:`check_program`, of each call the rows that it touches once. That
    the rows are in memory is replayed with all calls (``check.calls``).
    """
    _compare_copies(program, copied_bytes)
    homes = {program.place(t).region for t in (*program.inputs, *program.outputs)}
    total = 0
    for number, band in program.calls:
        step = program.steps[number]
        if step.copies:
            continue
        rows = {row for y in step.rows(band) for row in rows_touched(program, step, y)}
        places = ((program.row_place(tensor, row), tensor) for tensor, row in rows)
        total += sum(program.row_bytes(t) for at, t in places if at and at.region in homes)
    _compare_accesses(program, total, slow_bytes)


def _compare_copies(program: Program, copied_bytes: int) -> None:
    found = program.transferred_bytes or 0
    if found != copied_bytes:
        raise CheckError(
            f"{program.name}: its transfers copy {found:,} bytes, the plan {copied_bytes:,}"
        )


def _compare_accesses(program: Program, found: int, slow_bytes: int) -> None:
    if found != slow_bytes:
        raise CheckError(
            f"{program.name}: its calls access {found:,} bytes in slow memory, those of the plan "
            f"{slow_bytes:,}"
        )


def _in_slow_memory(program: Program) -> int:
    """Return the bytes that calls access in the memory of inputs and outputs, each call once."""
    homes = {program.place(t).region for t in (*program.inputs, *program.outputs)}
    total = 0
    for event in events(program):
        if event.transfer is None:
            read, made = touched(program, event)
            ranges = {bytes_of(program, t) for t in (*read, *made)}
            accessed = [*ranges, *scratch_of(program, event)]
            total += sum(one.stop - one.start for one in accessed if one.region in homes)
    return total


class _Memory:
    """The tensors that are whole, by what was written."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.whole: dict[int, ByteRange] = {}
        written = {t for step in program.steps for t in step.writes}
        self.written = written | {t.target for t in program.transfers} | {*program.inputs}

    def replay(self, event: Event) -> None:
        """What an event reads is whole; what it writes is whole afterwards."""
        where = f"{self.program.name}: call {event.call}"
        if event.transfer is not None:
            where = f"{self.program.name}: the transfer before call {event.call}"
            source, target = event.transfer.source, event.transfer.target
            sizes = [self.program.tensors[t].size_bytes for t in (source, target)]
            if sizes[0] != sizes[1]:
                raise CheckError(f"{where}: {sizes[1]} bytes are copied of {sizes[0]}")
        read, made = touched(self.program, event)
        for tensor in read:
            self.read(tensor, where)
        for one in scratch_of(self.program, event):
            self.overwrite(one)
        for tensor in made:
            self.write(tensor)

    def read(self, tensor: int, where: str) -> None:
        """Raise :class:`CheckError` unless a tensor, or what it is a view of, is whole."""
        wanted = bytes_of(self.program, tensor)
        whole = tensor in self.whole
        if tensor not in self.written:
            whole = wanted in self.whole.values()
        if not whole:
            name = self.program.tensors[tensor].name
            raise CheckError(f"{where}: tensor {name!r} is not in memory, or not any more")

    def write(self, tensor: int) -> None:
        """A tensor is written."""
        self.overwrite(bytes_of(self.program, tensor))
        self.whole[tensor] = bytes_of(self.program, tensor)

    def overwrite(self, written: ByteRange) -> None:
        """Bytes are written: no tensor that holds one of them is whole."""
        self.whole = {t: one for t, one in self.whole.items() if not one.meets(written)}
