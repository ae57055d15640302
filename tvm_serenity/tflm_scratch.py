"""What scratch of kernels adds to an offline plan: the margin an arena needs for it.

TFLM places the scratch that kernels ask for around the planned tensors, largest first, each in
the first gap that is free in its scope. How much they ask for is theirs: the reference kernels of
convolutions, dense layers and pools ask for none (float32 has no others); CMSIS-NN's int8 kernels
ask, on a Cortex-M with DSP instructions (``arm_*_get_buffer_size``), for

* a convolution: two columns of the filter in int16, its length rounded up to four; none where
  the filter is 1 x 1;
* a depthwise convolution (multiplier 1): its filter in int16;
* an average pool: one int32 a channel.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tvm_serenity.graph import Graph, Op
from tvm_serenity.plan import Buffer
from tvm_serenity.tflm import ALIGNMENT, OfflinePlan

KERNELS = "CMSIS-NN, int8, Cortex-M with DSP"
_NONE = """
    ADD MUL SUB RESHAPE SOFTMAX FULLY_CONNECTED MAX_POOL_2D CONCATENATION PAD SPLIT QUANTIZE
    DEQUANTIZE RELU RELU6 LOGISTIC TANH STRIDED_SLICE SQUEEZE EXPAND_DIMS
"""
_KNOWN_NONE = frozenset(_NONE.split())
_CMSIS_NN = ("CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D")


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
    if op.kind in _KNOWN_NONE:
        return 0
    shapes = [graph.tensors[t].shape for t in op.inputs]
    made = graph.tensors[op.outputs[0]] if op.outputs else None
    if made is not None and made.dtype == "float32" and op.kind in _CMSIS_NN:
        return 0
    if made is None or made.dtype != "int8" or not shapes or shapes[0] is None:
        return None
    if op.kind == "AVERAGE_POOL_2D":
        return 4 * shapes[0][-1]
    weights = shapes[1] if len(shapes) > 1 else None
    if weights is None or len(weights) != 4 or made.shape is None:
        return None
    if op.kind == "CONV_2D":
        _, height, width, channels = weights
        column = height * width * channels
        return 0 if height == width == 1 else 4 * (-(-column // 4) * 4)
    if op.kind == "DEPTHWISE_CONV_2D":
        same = shapes[0][-1] == made.shape[-1]
        return 2 * weights[1] * weights[2] * weights[3] if same else 0
    return None


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
