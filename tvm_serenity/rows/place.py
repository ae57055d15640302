"""Places the bands of an order, and the inputs that are in memory from the start."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tvm_serenity.memory import LiveRange, live_ranges
from tvm_serenity.plan import Buffer, Plan, PlanOptions
from tvm_serenity.rows.overlap import place_with_overlaps
from tvm_serenity.rows.split import Banded

WORKSPACE_ALIGNMENT = 16
"""The alignment of workspace that kernels expect, whatever they store; no core asks for more."""


def place_bands(
    banded: Banded, order: Sequence[int], options: PlanOptions, base: int = 0
) -> tuple[tuple[LiveRange, ...], Plan]:
    """Return the live ranges of an order and a plan with an offset for each.

    The bands of inputs in memory from the start have fixed offsets, each input as one block, from
    ``base`` on.
    """
    ranges = live_ranges(banded.graph, order)
    fixed = input_offsets(banded, base)
    buffers = buffers_of(banded, ranges, fixed)
    plan = place_with_overlaps(banded, order, ranges, buffers, options)
    # Input rows without readers are in memory at the start too.
    held = base + held_bytes(banded) if fixed else 0
    return ranges, replace(plan, arena_bytes=max(plan.arena_bytes, held))


def buffers_of(
    banded: Banded, ranges: Sequence[LiveRange], fixed: Mapping[int, int] = MappingProxyType({})
) -> list[Buffer]:
    """Return one buffer per live range; ``fixed`` holds the offsets of placed tensors."""
    buffers = []
    for index, live in enumerate(ranges):
        align = alignment_of(banded, live, WORKSPACE_ALIGNMENT)
        place = fixed.get(live.tensors[0]) if live.tensors else None
        name = f"{index} {live.name}"
        buffers.append(Buffer(name, live.start, live.stop, live.size_bytes, align, place))
    return buffers


def alignment_of(banded: Banded, live_range: LiveRange, workspace: int) -> int:
    """Return the alignment of a live range; ``workspace`` is that of workspace."""
    if live_range.workspace_of is not None:
        return workspace
    features = banded.network.features
    return max([1, *(features[banded.bands[t].feature].align for t in live_range.tensors)])


def input_offsets(banded: Banded, base: int = 0) -> dict[int, int]:
    """Return the offsets of the bands of resident inputs, the first input from ``base`` on."""
    features, places, start = banded.network.features, {}, base
    bases: dict[int, int] = {}
    for feature in banded.resident:
        align = features[feature].align
        bases[feature] = start = -(-start // align) * align
        start += features[feature].size_bytes
    for tensor in banded.graph.inputs:
        band = banded.bands[tensor]
        places[tensor] = bases[band.feature] + band.first * features[band.feature].row_bytes
    return places


def held_bytes(banded: Banded) -> int:
    """Return the bytes of the inputs that are in memory from the start."""
    ends = [
        place + banded.graph.tensors[tensor].size_bytes
        for tensor, place in input_offsets(banded).items()
    ]
    return max(ends, default=0)


def input_alignment(banded: Banded) -> int:
    """Return the alignment of the first input in memory, in bytes."""
    features = banded.network.features
    return max((features[f].align for f in banded.resident), default=1)
