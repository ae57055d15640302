"""What scratch of kernels adds to an offline plan: the margin an arena needs for it.

TFLM places the scratch that kernels ask for around the planned tensors, largest first, each in
the first gap that is free in its scope. How much they ask for is theirs: the reference kernels of
convolutions, dense layers and pools ask for none (float32 has no others); what CMSIS-NN's int8
kernels ask for on a Cortex-M with DSP instructions (``arm_*_get_buffer_size``) each operator's file
says (``Operator.scratch``).
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
    """What scratch makes of a plan.

    ``free_bytes[s]``: the largest gap below the end of the planned tensors while the s-th op of
    the order runs: scratch up to that is free. ``scratch_bytes[s]``: what CMSIS-NN asks for
    there, None where that is not known. ``arena_bytes``: the head with that scratch.
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
    """Return the bytes of scratch CMSIS-NN's kernel of ``op`` asks for; None where not known."""
    asked = operator(op.kind).storage.scratch
    if asked is None:
        return None
    made = graph.tensors[op.outputs[0]] if op.outputs else None
    return asked([graph.tensors[t].shape for t in op.inputs], made)


def _live_at(
    buffers: Sequence[Buffer], offsets: Sequence[int], scope: int
) -> list[tuple[int, int]]:
    """Start and end of the buffers that are live in ``scope``, lowest first."""
    return sorted(
        (offset, offset + b.size_bytes)
        for b, offset in zip(buffers, offsets, strict=True)
        if b.lower <= scope < b.upper
    )


def _gaps(taken: Sequence[tuple[int, int]], end: int) -> list[tuple[int, int]]:
    """The free stretches below ``end``."""
    gaps, at = [], 0
    for start, stop in taken:
        if start > at:
            gaps.append((at, start))
        at = max(at, stop)
    return [*gaps, (at, end)] if at < end else gaps
