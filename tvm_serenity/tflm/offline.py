"""TensorFlow Lite Micro's offline memory plan: created, encoded, decoded and checked.

TFLM reads offsets for a model's tensors from the metadata ``OfflineMemoryAllocation``: 32-bit
integers for the format's version, the subgraph, the number of tensors, and each tensor's offset
from the start of the arena's head, -1 for tensors that TFLM places itself (its documentation of
memory management; ``micro_allocation_info.cc``). Versions of TFLM disagree on several subgraphs, so
only models with one subgraph are planned.

Lifetimes are TFLM's: inputs are produced in scope 0, operator i runs in scope i + 1, outputs stay
to the last scope, and every operator computes. Sizes are rounded up to its alignment of 16 bytes.
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
"""The offset of tensors that TFLM places itself: constants (not at all), variables, unused ones."""

_HEADER_WORDS = 3
_MAX_ARENA_BYTES = 2**31 - 1


@dataclass(frozen=True)
class OfflinePlan:
    """A plan for TFLM: ``offsets[t]`` of every tensor of the subgraph, and the plan behind it.

    ``tensors[i]`` is the tensor of ``plan.buffers[i]``; ``arena_bytes`` is the end of the last one.
    """

    offsets: tuple[int, ...]
    tensors: tuple[int, ...]
    plan: Plan

    @property
    def arena_bytes(self) -> int:
        """Bytes of the arena's head for the planned tensors."""
        return self.plan.arena_bytes


def lifetimes(graph: Graph, order: Sequence[int]) -> tuple[tuple[int, ...], tuple[Buffer, ...]]:
    """Return the tensors that TFLM places in its head under ``order``, and their buffers."""
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
    """Return offsets for the tensors of a file's ``graph`` that runs in ``order``.

    Raises :class:`InputError` if an offset exceeds the format's 32 bits.
    """
    tensors, buffers = lifetimes(graph, order)
    placed = plan(buffers, options=options or PlanOptions())
    if placed.arena_bytes > _MAX_ARENA_BYTES:
        raise InputError(
            f"{graph.name}: the arena of {placed.arena_bytes} bytes exceeds the "
            f"{_MAX_ARENA_BYTES} that TFLM's format can address"
        )
    offsets = [ONLINE] * len(graph.tensors)
    for tensor, offset in zip(tensors, placed.offsets, strict=True):
        offsets[tensor] = offset
    return OfflinePlan(tuple(offsets), tensors, placed)


def encode(offsets: Sequence[int]) -> bytes:
    """Return the metadata's bytes for the offsets of all tensors of a model's only subgraph."""
    words = (VERSION, SUBGRAPH, len(offsets), *offsets)
    return struct.pack(f"<{len(words)}i", *words)


def decode(content: bytes) -> tuple[int, ...]:
    """Return the offsets in a metadata's bytes; raise :class:`InputError` if they are truncated."""
    if len(content) < 4 * _HEADER_WORDS:
        raise InputError(
            f"metadata {OFFLINE_PLAN!r}: {len(content)} bytes are too few for a header"
        )
    count = struct.unpack_from("<i", content, 8)[0]
    if count < 0 or len(content) < 4 * (_HEADER_WORDS + count):
        raise InputError(
            f"metadata {OFFLINE_PLAN!r}: {count} offsets in {len(content)} bytes; it is truncated"
        )
    return struct.unpack_from(f"<{count}i", content, 4 * _HEADER_WORDS)


def check_offline(graph: Graph, order: Sequence[int], offsets: Sequence[int]) -> int:
    """Check a file's offsets by the naive checker; return the end of the last tensor.

    Raises :class:`CheckError` if the number of offsets is wrong, a tensor that TFLM places has none
    or an unaligned one, or two tensors that are live together overlap.
    """
    if len(offsets) != len(graph.tensors):
        raise CheckError(f"the plan has {len(offsets)} offsets for {len(graph.tensors)} tensors")
    tensors, buffers = lifetimes(graph, order)
    for tensor in tensors:
        if offsets[tensor] < 0:
            raise CheckError(f"tensor {graph.tensors[tensor].name!r} has no offset")
    placed = [offsets[tensor] for tensor in tensors]
    check_plan(buffers, placed)
    return max(
        (offset + b.size_bytes for b, offset in zip(buffers, placed, strict=True)), default=0
    )
