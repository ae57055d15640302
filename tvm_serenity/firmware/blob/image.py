"""The bytes of a blob: constants, integers, and the calls in their order, for a kernel set.

All numbers are 32-bit words, little-endian; offsets count bytes from the start of the blob.

* The header: see ``HEADER``. The checksum is CRC-32 of all bytes after it.
* The kernels that the blob needs: digests of two words.
* The inputs, then the outputs: offset in the arena, bytes, type, scale (float), zero point.
* The calls: kernel (16 bits) and count of arguments (16 bits), offset of the integers; then each
  argument: its offset in the arena, or in the blob plus ``CONSTANT``, and its bytes.
* Integers of calls, each with the extents of local arrays behind; constants.
"""

import struct
import zlib

import numpy as np

from tvm_serenity.firmware.blob.kernel_set import DIGEST_BYTES, KernelSet, in_set
from tvm_serenity.firmware.c_names import C_TYPES
from tvm_serenity.firmware.program import (
    WORD,
    Argument,
    Const,
    Count,
    Data,
    Place,
    Program,
    Row,
    Scratch,
)

MAGIC, VERSION = int.from_bytes(b"SRNB", "little"), 1
HEADER = (
    *("magic", "version", "size", "checksum", "core", "alignment", "arena_alignment"),
    *("arena_bytes", "kernel_count", "call_count", "input_count", "output_count"),
    *("kernels", "calls", "edges"),
)
"""The words of the header."""
SUMMED_FROM = 4 * WORD
"""The first byte that the checksum covers."""
CONSTANT, NOTHING = 1 << 31, (1 << 32) - 1
"""Added to the offset of a constant; the place of an argument that is NULL."""
TYPES = {dtype: number for number, dtype in enumerate(C_TYPES)}
"""The number of each type of elements."""


def core_number(core: str) -> int:
    """Return the word that stands for a core."""
    return zlib.crc32(core.encode())


def refusal(program: Program) -> str:
    """Return why a program cannot be written as a blob, "" if it can."""
    states = [t for t in program.inputs if program.tensors[t].initial is not None]
    reasons = {
        "runs in bands of rows; give a board with more RAM, or --format project": (
            not program.straight
        ),
        "has kernels that are compiled already": bool(program.objects),
        "calls functions of the user": bool(program.users),
        "reads constants from RAM": program.copied,
        "copies tensors between memories": program.transferred_bytes is not None,
        "has tensors in several memories": sum(map(bool, program.arena_bytes.values())) > 1,
        "keeps states between runs": bool(states),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def blob(program: Program, known: KernelSet) -> bytes:
    """Return ``program``, which is not refused, as a blob for the kernels of ``known``."""
    return _Image(program, known).packed()


class _Image:
    def __init__(self, program: Program, known: KernelSet) -> None:
        self.program, self.core = program, core_number(known.core)
        self.kernels: dict[str, int] = {}
        self.placed: dict[bytes, int] = {}
        self.data = bytearray()
        self.alignment = WORD
        steps = [program.steps[step] for step, _ in program.calls]
        words = sum(2 + 2 * len(step.arguments) for step in steps)
        digests = {in_set(program.kernel[s.kernels[s.variants[0]]])[0].digest for s in steps}
        edges = 5 * (len(program.inputs) + len(program.outputs))
        self.at_kernels = len(HEADER) * WORD
        self.at_edges = self.at_kernels + len(digests) * DIGEST_BYTES
        self.at_calls = self.at_edges + edges * WORD
        self.at_data = self.at_calls + words * WORD

    def packed(self) -> bytes:
        program = self.program
        calls = b"".join(self._call(step) for step, _ in program.calls)
        edges = b"".join(map(self._edge, (*program.inputs, *program.outputs)))
        kernels = b"".join(bytes.fromhex(digest) for digest in self.kernels)
        self.data += bytes(-len(self.data) % WORD)
        words = {
            "magic": MAGIC,
            "version": VERSION,
            "size": self.at_data + len(self.data),
            "checksum": 0,
            "core": self.core,
            "alignment": self.alignment,
            "arena_alignment": program.alignment_bytes,
            "arena_bytes": sum(program.arena_bytes.values()),
            "kernel_count": len(self.kernels),
            "call_count": len(program.calls),
            "input_count": len(program.inputs),
            "output_count": len(program.outputs),
            "kernels": self.at_kernels,
            "calls": self.at_calls,
            "edges": self.at_edges,
        }
        header = struct.pack(f"<{len(HEADER)}I", *(words[name] for name in HEADER))
        image = bytearray(header + kernels + edges + calls + self.data)
        struct.pack_into("<I", image, HEADER.index("checksum") * WORD, checksum(image))
        return bytes(image)

    def _edge(self, tensor: int) -> bytes:
        known, place = self.program.tensors[tensor], self.program.place(tensor)
        scale = 0.0 if known.quantisation is None else known.quantisation.scale
        zero = 0 if known.quantisation is None else known.quantisation.zero_point
        type_ = TYPES[known.dtype]
        return struct.pack("<IIIfi", place.offset_bytes, known.size_bytes, type_, scale, zero)

    def _call(self, index: int) -> bytes:
        program, step = self.program, self.program.steps[index]
        kernel = program.kernel[step.kernels[step.variants[0]]]
        made, integers = in_set(kernel)
        number = self.kernels.setdefault(made.digest, len(self.kernels))
        words = (*integers, *made.extents)
        at = self._constant(struct.pack(f"<{len(words)}i", *words), WORD)
        places = [self._argument(a, step.outside) for a in step.arguments]
        head = struct.pack("<HHI", number, len(places), at)
        return head + b"".join(struct.pack("<II", *place) for place in places)

    def _argument(self, argument: Argument, outside: int | None) -> tuple[int, int]:
        program = self.program
        if isinstance(argument, Const):
            return self._of_constant(argument.constant)
        if isinstance(argument, Data):
            return _in_arena(
                program.place(argument.tensor), program.tensors[argument.tensor].size_bytes
            )
        if isinstance(argument, Scratch):
            return _in_arena(argument.at(0), argument.size_bytes)
        if isinstance(argument, Row):
            place = program.row_place(argument.tensor, argument.row(0))
            if place is not None:
                return _in_arena(place, program.row_bytes(argument.tensor))
            return (NOTHING, 0) if outside is None else self._of_constant(outside)
        word = struct.pack("<I", isinstance(argument, Count))  # one row, whose number is 0
        return CONSTANT + self._constant(word, WORD), WORD

    def _of_constant(self, index: int) -> tuple[int, int]:
        array = np.ascontiguousarray(self.program.constants[index].array)
        at = self._constant(array.tobytes(), self.program.alignment(index))
        return CONSTANT + at, array.nbytes

    def _constant(self, data: bytes, alignment: int) -> int:
        """Return the offset of ``data``, which the blob has once for each alignment."""
        self.alignment = max(self.alignment, alignment)
        key = bytes([alignment]) + data
        if key not in self.placed:
            self.data += bytes(-(self.at_data + len(self.data)) % alignment)
            self.placed[key] = self.at_data + len(self.data)
            self.data += data
        return self.placed[key]


def _in_arena(place: Place, size_bytes: int) -> tuple[int, int]:
    return place.offset_bytes, size_bytes


def checksum(image: bytes | bytearray) -> int:
    """Return the checksum of a blob."""
    return zlib.crc32(image[SUMMED_FROM:])
