"""TensorFlow Lite Micro's offline memory plan: made, encoded, decoded and checked.

TFLM reads offsets for a model's tensors from the metadata ``OfflineMemoryAllocation``: 32-bit
integers, the format's version, the subgraph, the number of tensors, and for each tensor its offset
from the start of the arena's head, -1 for what TFLM places itself (its documentation of memory
management; ``micro_allocation_info.cc``). Versions of TFLM disagree on several subgraphs, so only
models with one are planned.

Lifetimes are TFLM's: inputs are made in scope 0, operator i runs in scope i + 1, outputs stay to
the last scope, every operator is real. Sizes are rounded up to its alignment of 16 bytes.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from tvm_serenity.errors import CheckError, InputError
from tvm_serenity.frontends.tflite_file import OFFLINE_PLAN
from tvm_serenity.graph import Graph, Role
from tvm_serenity.plan import Buffer, Plan, PlanOptions, check_plan, plan

ALIGNMENT = 16
VERSION = 1
SUBGRAPH = 0
ONLINE = -1
"""The offset of what TFLM places itself: constants (not at all), variables, unused tensors."""

_HEADER_WORDS = 3
_MAX_ARENA_BYTES = 2**31 - 1


@dataclass(frozen=True)
class OfflinePlan:
    """A plan for TFLM: ``offsets[t]`` of every tensor of the subgraph, and how it was found.

    ``tensors[i]`` is the tensor of ``plan.buffers[i]``; ``arena_bytes`` is where the last of them
    ends.
    """

    offsets: tuple[int, ...]
    tensors: tuple[int, ...]
    plan: Plan

    @property
    def arena_bytes(self) -> int:
        """Bytes of the arena's head that the planned tensors take."""
        return self.plan.arena_bytes


def lifetimes(graph: Graph, order: Sequence[int]) -> tuple[tuple[int, ...], tuple[Buffer, ...]]:
    """Return the tensors that TFLM places in its head under ``order``, and the buffer of each."""
    scope = {op: step + 1 for step, op in enumerate(order)}
    last = len(graph.ops)
    inputs, outputs = set(graph.inputs), set(graph.outputs)
    tensors, buffers = [], []
    for index, tensor in enumerate(graph.tensors):
        maker = graph.producer[index]
        placed = tensor.role is Role.ACTIVATION and tensor.size_bytes > 0
        if not placed or (maker < 0 and index not in inputs):
            continue
        first = 0 if index in inputs else scope[maker]
        used = [first, *(scope[op] for op in graph.consumers[index])]
        if index in outputs:
            used.append(last)
        size = -(-tensor.size_bytes // ALIGNMENT) * ALIGNMENT
        tensors.append(index)
        buffers.append(Buffer(tensor.name, first, max(used) + 1, size, ALIGNMENT))
    return tuple(tensors), tuple(buffers)


def plan_offline(
    graph: Graph, order: Sequence[int], options: PlanOptions | None = None
) -> OfflinePlan:
    """Return offsets for the tensors of ``graph``, a file's, that runs in ``order``.

    Raises :class:`InputError` where an offset does not fit the format's 32 bits.
    """
    tensors, buffers = lifetimes(graph, order)
    found = plan(buffers, options=options or PlanOptions())
    if found.arena_bytes > _MAX_ARENA_BYTES:
        raise InputError(
            f"{graph.name}: the arena of {found.arena_bytes} bytes exceeds the "
            f"{_MAX_ARENA_BYTES} that TFLM's format can address"
        )
    offsets = [ONLINE] * len(graph.tensors)
    for tensor, offset in zip(tensors, found.offsets, strict=True):
        offsets[tensor] = offset
    return OfflinePlan(tuple(offsets), tensors, found)


def encode(offsets: Sequence[int]) -> bytes:
    """Return the metadata's bytes for the offsets of all tensors of a model's one subgraph."""
    words = (VERSION, SUBGRAPH, len(offsets), *offsets)
    return struct.pack(f"<{len(words)}i", *words)


def decode(content: bytes) -> tuple[int, ...]:
    """Return the offsets in a metadata's bytes; :class:`InputError` where they are none."""
    if len(content) < 4 * _HEADER_WORDS:
        raise InputError(f"metadata {OFFLINE_PLAN!r}: {len(content)} bytes hold no header")
    count = struct.unpack_from("<i", content, 8)[0]
    if count < 0 or len(content) < 4 * (_HEADER_WORDS + count):
        raise InputError(
            f"metadata {OFFLINE_PLAN!r}: {count} offsets in {len(content)} bytes; it is truncated"
        )
    return struct.unpack_from(f"<{count}i", content, 4 * _HEADER_WORDS)


def check_offline(graph: Graph, order: Sequence[int], offsets: Sequence[int]) -> int:
    """Check offsets as read from a file by the naive checker; return where the last tensor ends.

    Raises :class:`CheckError` where there is not one offset a tensor, a tensor that TFLM places
    has none or one that is not aligned, or two that are live together overlap.
    """
    if len(offsets) != len(graph.tensors):
        raise CheckError(f"{len(offsets)} offsets for {len(graph.tensors)} tensors")
    tensors, buffers = lifetimes(graph, order)
    for tensor in tensors:
        if offsets[tensor] < 0:
            raise CheckError(f"tensor {graph.tensors[tensor].name!r} has no offset")
    placed = [offsets[tensor] for tensor in tensors]
    check_plan(buffers, placed)
    return max(
        (offset + b.size_bytes for b, offset in zip(buffers, placed, strict=True)), default=0
    )
