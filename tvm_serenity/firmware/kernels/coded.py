"""Calls with weights in an entropy code, which they decode into their workspace first.

The code is a canonical Huffman code of the bytes of a layer's packed weights, so any kernel of the
library reads them as ever. It is exact, and takes at most a bit a byte more than the entropy.
"""

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tvm_serenity.firmware.c_names import C_TYPES
from tvm_serenity.firmware.integers import integer
from tvm_serenity.firmware.kernels.record import KernelForm, LibraryCall
from tvm_serenity.firmware.program import Array, LibraryFile, Param

WEIGHTS, CODE, WORKSPACE = "w", "code", "workspace"
"""The parameters of kernels: packed weights, the same in a code, and workspace."""
MOST_BITS = 15
ROOM_BYTES = 4
"""Bytes after the last word, which the decoder may read."""
TABLE_BYTES = 512
"""The work memory of the decoder: two bytes for each first byte of a word."""
ALIGNMENT = 16


def lengths_of(counts: Sequence[int]) -> list[int]:
    """Return the length of each symbol's word, at most ``MOST_BITS``; 0 for a count of 0.

    Source: D. Huffman, A Method for the Construction of Minimum-Redundancy Codes, 1952. Counts are
    halved until no word is too long.
    """
    scaled = list(counts)
    while True:
        lengths = [0] * len(scaled)
        heap: list[tuple[int, int, tuple[int, ...]]] = [
            (count, i, (i,)) for i, count in enumerate(scaled) if count
        ]
        heapq.heapify(heap)
        for one in heap[:1] if len(heap) == 1 else ():
            lengths[one[1]] = 1
        while len(heap) > 1:
            (a, i, left), (b, _, right) = heapq.heappop(heap), heapq.heappop(heap)
            for symbol in (*left, *right):
                lengths[symbol] += 1
            heapq.heappush(heap, (a + b, i, left + right))
        if max(lengths) <= MOST_BITS:
            return lengths
        scaled = [-(-count // 2) for count in scaled]


def encoded(data: bytes) -> Array:
    """Return ``data``, which is not empty, in the code of ``common/decode.h``."""
    counted = Counter(data)
    lengths = lengths_of([counted[symbol] for symbol in range(256)])
    symbols = sorted((length, symbol) for symbol, length in enumerate(lengths) if length)
    least, most = symbols[0][0], symbols[-1][0]
    per_length = Counter(length for length, _ in symbols)
    head = bytes((least, most)) + b"".join(
        per_length[length].to_bytes(2, "little") for length in range(least, most + 1)
    )
    words, word, before = np.zeros(256, np.int64), 0, least
    for length, symbol in symbols:
        word <<= length - before
        words[symbol], word, before = word, word + 1, length
    drawn = np.frombuffer(data, np.uint8)
    widths = np.array(lengths)[drawn]
    places = np.arange(int(widths.sum())) - np.repeat(np.cumsum(widths) - widths, widths)
    bits = np.repeat(words[drawn], widths) >> (np.repeat(widths, widths) - 1 - places) & 1
    stream = np.packbits(bits.astype(np.uint8)).tobytes()
    text = head + bytes(symbol for _, symbol in symbols) + stream + bytes(ROOM_BYTES)
    return np.frombuffer(text, np.uint8)


def coded(call: LibraryCall, cost_per_byte: float | None) -> LibraryCall | None:
    """Return ``call`` with its weights in a code; None if it has no weights.

    ``cost_per_byte``: of decoding, in the unit of the call's cost; None on a core without prices.
    """
    kernel = call.kernel
    at = next((i for i, one in enumerate(kernel.params) if one.name == WEIGHTS), None)
    if at is None:
        return None
    data = np.ascontiguousarray(call.constants[0]).tobytes()  # weights are the first constant
    if not data:
        return None
    table = -(-call.workspace_bytes // ALIGNMENT) * ALIGNMENT
    begin = table + TABLE_BYTES
    params = list(kernel.params)
    dtype = params[at].dtype
    params[at] = Param(CODE, "uint8", True)
    if not any(one.name == WORKSPACE for one in params):
        params.append(Param(WORKSPACE, "uint8", False))
    ctype = C_TYPES[dtype]
    body = (
        f"    {ctype} *const {WEIGHTS} = ({ctype} *)(void *)({WORKSPACE} + {integer(begin)});\n"
        f"    uint16_t *const table = (uint16_t *)(void *)({WORKSPACE} + {integer(table)});\n"
        f"    decode_bytes({CODE}, (uint8_t *){WEIGHTS}, {integer(len(data))}, table);\n"
    )
    options = replace(call.form.options, coded=True)
    cost = None
    if call.cost is not None and cost_per_byte is not None:
        cost = call.cost + round(cost_per_byte * len(data))
    return replace(
        call,
        form=KernelForm(call.form.kernel, options),
        kernel=replace(
            kernel,
            params=tuple(params),
            body=body + kernel.body,
            support=(LibraryFile("common/decode.h"), *kernel.support),
        ),
        constants=(encoded(data), *call.constants[1:]),
        workspace_bytes=begin + len(data),
        cost=cost,
    )
