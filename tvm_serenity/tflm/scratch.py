"""The arena margin that an offline plan needs for the scratch memory of kernels.

TFLM places the scratch that kernels request around the planned tensors, largest first, each in the
first gap that is free in its scope. The reference kernels of convolutions, dense layers and pools
request none (float32 has no others). The requests of CMSIS-NN's int8 kernels on a Cortex-M with DSP
instructions (``arm_*_get_buffer_size``) are in each operator's file (``Operator.scratch``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm_serenity.graph import Graph, Op
from tvm_serenity.operators import operator
from tvm_serenity.plan import Buffer
from tvm_serenity.tflm.offline import ALIGNMENT, OfflinePlan

KERNELS = "CMSIS-NN, int8, Cortex-M with DSP"


@dataclass(frozen=True)
class Margin:
    """The effect of scratch on a plan.

    ``free_bytes[s]``: the largest gap below the end of the planned tensors during the s-th op of
    the order, free for scratch. ``scratch_bytes[s]``: CMSIS-NN's request there, None if unknown.
    ``arena_bytes``: the head with that scratch.
    """

    free_bytes: tuple[int, ...]
    scratch_bytes: tuple[int | None, ...]
    arena_bytes: int


def margin_of(graph: Graph, order: Sequence[int], planned: OfflinePlan) -> Margin:
    """Return the margin of a plan of ``graph`` that runs in ``order``."""
    buffers, offsets = planned.plan.buffers, planned.plan.offsets
    end = planned.arena_bytes
    free, asked, arena = [], [], end
    for step, index in enumerate(order):
        taken = _live_at(buffers, offsets, step + 1)
        free.append(max((stop - start for start, stop in _gaps(taken, end)), default=0))
        scratch = cmsis_nn_bytes(graph, graph.ops[index])
        asked.append(scratch)
        need = -(-(scratch or 0) // ALIGNMENT) * ALIGNMENT
        if need > free[-1]:
            arena = max(arena, max((stop for _, stop in taken), default=0) + need)
    return Margin(tuple(free), tuple(asked), arena)


def cmsis_nn_bytes(graph: Graph, op: Op) -> int | None:
    """Return the scratch in bytes that CMSIS-NN's kernel of ``op`` requests, None if unknown."""
    asked = operator(op.kind).storage.scratch
    if asked is None:
        return None
    result = graph.tensors[op.outputs[0]] if op.outputs else None
    return asked([graph.tensors[t].shape for t in op.inputs], result)


def _live_at(
    buffers: Sequence[Buffer], offsets: Sequence[int], scope: int
) -> list[tuple[int, int]]:
    """Return start and end of the buffers live in ``scope``, lowest first."""
    return sorted(
        (offset, offset + b.size_bytes)
        for b, offset in zip(buffers, offsets, strict=True)
        if b.lower <= scope < b.upper
    )


def _gaps(taken: Sequence[tuple[int, int]], end: int) -> list[tuple[int, int]]:
    """Return the free stretches below ``end``."""
    gaps, at = [], 0
    for start, stop in taken:
        if start > at:
            gaps.append((at, start))
        at = max(at, stop)
    return [*gaps, (at, end)] if at < end else gaps
