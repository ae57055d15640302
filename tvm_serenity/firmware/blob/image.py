"""The bytes of a blob: constants, integers, and the calls in their order, for a kernel set.

All numbers are 32-bit words, little-endian; offsets count bytes from the start of the blob.

* The header: see ``HEADER``. The checksum is CRC-32 of all bytes after it.
* The kernels that the blob needs: digests of two words.
* The inputs, then the outputs: offset in the arena, bytes, type, scale (float), zero point; for an
  input that is a state the number of the output that is its next value (else ``NOTHING``), and the
  first value of its elements.
* Integers of steps, each with the extents of local arrays behind; constants.
* The steps: kernel (16 bits) and count of arguments (16 bits), offset of the integers; then each
  argument: its offset in the arena, or in the blob plus ``CONSTANT``, and its bytes. Calls that
  differ in places alone share a step, in which these places are ``VARIES``.
* The calls in their order: offset of the step, then the places that vary.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tvm_serenity.firmware.blob.kernel_set import DIGEST_BYTES, KernelSet, in_set
from tvm_serenity.firmware.c_names import C_TYPES
from tvm_serenity.firmware.program import (
    WORD,
    Argument,
    Const,
    Count,
    Data,
    Program,
    Row,
    Scratch,
    Step,
)

MAGIC, VERSION = int.from_bytes(b"SRNB", "little"), 2
HEADER = (
    *("magic", "version", "size", "checksum", "core", "alignment", "arena_alignment"),
    *("arena_bytes", "kernel_count", "call_count", "input_count", "output_count"),
    *("kernels", "calls", "edges"),
)
"""The words of the header."""
SUMMED_FROM = 4 * WORD
"""The first byte that the checksum covers."""
CONSTANT, NOTHING, VARIES = 1 << 31, (1 << 32) - 1, (1 << 32) - 2
"""Added to the offset of a constant; the place of an argument that is NULL, or that each call of a
step has for itself."""
EDGE_WORDS = 7
"""Words of an input or output."""
TYPES = {dtype: number for number, dtype in enumerate(C_TYPES)}
"""The number of each type of elements."""


def core_number(core: str) -> int:
    """Return the word that stands for a core."""
    return zlib.crc32(core.encode())


def refusal(program: Program) -> str:
    """Return why a program cannot be written as a blob, "" if it can."""
    reasons = {
        "takes its input row by row": program.fed is not None,
        "has kernels that are compiled already": bool(program.objects),
        "calls functions of the user": bool(program.users),
        "reads constants from RAM": program.copied,
        "copies tensors between memories": program.transferred_bytes is not None,
        "has tensors in several memories": sum(map(bool, program.arena_bytes.values())) > 1,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def blob(program: Program, known: KernelSet) -> bytes:
    """Return ``program``, which is not refused, as a blob for the kernels of ``known``."""
    return _Image(program, known).packed()


class _Placed(NamedTuple):
    """An argument of a call: its place as in the blob, and its bytes."""

    place: int
    size_bytes: int


class _Call(NamedTuple):
    """A call of a kernel: all but the places of its arguments is that of its step."""

    kernel: str
    places: tuple[int, ...]
    sizes: tuple[int, ...]
    step: int

    @property
    def shared(self) -> tuple[int, str, tuple[int, ...]]:
        """What calls of one step of the blob have in common."""
        return self.step, self.kernel, self.sizes


class _Image:
    def __init__(self, program: Program, known: KernelSet) -> None:
        self.program, self.core = program, core_number(known.core)
        self.kernels: dict[str, int] = {}
        self.placed: dict[bytes, int] = {}
        self.data = bytearray()
        self.alignment = WORD
        used = {
            s.kernels[v] for s in (program.steps[i] for i, _ in program.calls) for v in s.variants
        }
        digests = {in_set(program.kernel[name])[0].digest for name in used}
        edges = EDGE_WORDS * (len(program.inputs) + len(program.outputs))
        self.at_kernels = len(HEADER) * WORD
        self.at_edges = self.at_kernels + len(digests) * DIGEST_BYTES
        self.at_data = self.at_edges + edges * WORD

    def packed(self) -> bytes:
        program = self.program
        edges = b"".join(map(self._edge, (*program.inputs, *program.outputs)))
        steps, calls, call_count = self._tables()
        kernels = b"".join(bytes.fromhex(digest) for digest in self.kernels)
        at_steps = self.at_data + len(self.data)
        words = {
            "magic": MAGIC,
            "version": VERSION,
            "size": at_steps + len(steps) + len(calls),
            "checksum": 0,
            "core": self.core,
            "alignment": self.alignment,
            "arena_alignment": program.alignment_bytes,
            "arena_bytes": sum(program.arena_bytes.values()),
            "kernel_count": len(self.kernels),
            "call_count": call_count,
            "input_count": len(program.inputs),
            "output_count": len(program.outputs),
            "kernels": self.at_kernels,
            "calls": at_steps + len(steps),
            "edges": self.at_edges,
        }
        header = struct.pack(f"<{len(HEADER)}I", *(words[name] for name in HEADER))
        image = bytearray(header + kernels + edges + self.data + steps + calls)
        struct.pack_into("<I", image, HEADER.index("checksum") * WORD, checksum(image))
        return bytes(image)

    def _edge(self, tensor: int) -> bytes:
        known, place = self.program.tensors[tensor], self.program.place(tensor)
        scale = 0.0 if known.quantisation is None else known.quantisation.scale
        zero = 0 if known.quantisation is None else known.quantisation.zero_point
        state, initial = NOTHING, 0
        if known.initial is not None and tensor in self.program.inputs:
            states = [t for t in self.program.inputs if self.program.tensors[t].initial is not None]
            state = len(self.program.outputs) - len(states) + states.index(tensor)
            initial = known.initial
        numbers = place.offset_bytes, known.size_bytes, TYPES[known.dtype], scale, zero
        return struct.pack("<IIIfiIi", *numbers, state, initial)

    def _tables(self) -> tuple[bytes, bytes, int]:
        """Return the steps, the calls, and the number of calls; all constants are placed then."""
        calls = list(self._calls())
        groups: dict[tuple[int, str, tuple[int, ...]], list[_Call]] = {}
        for call in calls:
            groups.setdefault(call.shared, []).append(call)
        varying = {
            shared: [
                len(set(places)) > 1 for places in zip(*(c.places for c in group), strict=True)
            ]
            for shared, group in groups.items()
        }
        heads = {shared: self._head(group[0].kernel) for shared, group in groups.items()}
        self.data += bytes(-len(self.data) % WORD)
        steps, begins = bytearray(), {}
        for shared, group in groups.items():
            begins[shared] = self.at_data + len(self.data) + len(steps)
            number, integers = heads[shared]
            steps += struct.pack("<HHI", number, len(group[0].places), integers)
            for varies, place, size in zip(
                varying[shared], group[0].places, group[0].sizes, strict=True
            ):
                steps += struct.pack("<II", VARIES if varies else place, size)
        listed = bytearray()
        for call in calls:
            more = [
                p for p, varies in zip(call.places, varying[call.shared], strict=True) if varies
            ]
            listed += struct.pack(f"<{1 + len(more)}I", begins[call.shared], *more)
        return bytes(steps), bytes(listed), len(calls)

    def _head(self, name: str) -> tuple[int, int]:
        """Return the number of a kernel in the blob, and the offset of its integers."""
        made, integers = in_set(self.program.kernel[name])
        words = (*integers, *made.extents)
        at = self._constant(struct.pack(f"<{len(words)}i", *words), WORD)
        return self.kernels.setdefault(made.digest, len(self.kernels)), at

    def _calls(self) -> Iterator[_Call]:
        """Yield the calls of kernels in their order."""
        for index, band in self.program.calls:
            step = self.program.steps[index]
            for first, end in self.program.contiguous_runs(index, band):
                found = [self._argument(a, step, range(first, end)) for a in step.arguments]
                kernel = step.kernels[step.variants[first]]
                places, sizes = tuple(p.place for p in found), tuple(p.size_bytes for p in found)
                yield _Call(kernel, places, sizes, index)

    def _argument(self, argument: Argument, step: Step, rows: range) -> _Placed:
        """Return an argument of the call that computes ``rows`` of ``step``."""
        program = self.program
        if isinstance(argument, Const):
            return self._of_constant(argument.constant)
        if isinstance(argument, Data):
            size = program.tensors[argument.tensor].size_bytes
            return _Placed(program.place(argument.tensor).offset_bytes, size)
        if isinstance(argument, Scratch):
            at = argument.at(rows.start // step.together)
            return _Placed(at.offset_bytes, argument.size_bytes)
        if isinstance(argument, Row):
            place = program.row_place(argument.tensor, argument.row(rows.start))
            if place is not None:
                last = argument.row(rows[-1]) - argument.row(rows.start)
                size = (last + 1) * program.row_bytes(argument.tensor)
                return _Placed(place.offset_bytes, size)
            return _Placed(NOTHING, 0) if step.outside is None else self._of_constant(step.outside)
        number = len(rows) if isinstance(argument, Count) else rows.start
        return _Placed(CONSTANT + self._constant(struct.pack("<I", number), WORD), WORD)

    def _of_constant(self, index: int) -> _Placed:
        array = np.ascontiguousarray(self.program.constants[index].array)
        at = self._constant(array.tobytes(), self.program.alignment(index))
        return _Placed(CONSTANT + at, array.nbytes)

    def _constant(self, data: bytes, alignment: int) -> int:
        """Return the offset of ``data``, which the blob has once for each alignment."""
        self.alignment = max(self.alignment, alignment)
        key = bytes([alignment]) + data
        if key not in self.placed:
            self.data += bytes(-(self.at_data + len(self.data)) % alignment)
            self.placed[key] = self.at_data + len(self.data)
            self.data += data
        return self.placed[key]


def checksum(image: bytes | bytearray) -> int:
    """Return the checksum of a blob."""
    return zlib.crc32(image[SUMMED_FROM:])
