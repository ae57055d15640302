"""Places the bands of an order and the resident inputs in the arena."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tvm_serenity.memory import LiveRange, live_ranges
from tvm_serenity.plan import Buffer, Plan, PlanOptions
from tvm_serenity.rows.overlap import place_with_overlaps
from tvm_serenity.rows.split import Banded

WORKSPACE_ALIGNMENT = 16
"""Alignment in bytes of every kernel's workspace, the largest that any core requires."""


def place_bands(
    banded: Banded, order: Sequence[int], options: PlanOptions, base: int = 0
) -> tuple[tuple[LiveRange, ...], Plan]:
    """Return the live ranges of ``order``, and a plan with one offset for each range.

    Resident inputs in fast memory have fixed offsets: each is one block, and the first block
    begins at ``base``.
    """
    ranges = live_ranges(banded.graph, order)
    fixed = input_offsets(banded, base)
    buffers = buffers_of(banded, ranges, fixed)
    plan = place_with_overlaps(banded, order, ranges, buffers, options)
    # Input rows that no op reads have no live range, but they occupy memory too.
    inputs_end = base + held_bytes(banded) if fixed else 0
    return ranges, replace(plan, arena_bytes=max(plan.arena_bytes, inputs_end))


def buffers_of(
    banded: Banded, ranges: Sequence[LiveRange], fixed: Mapping[int, int] = MappingProxyType({})
) -> list[Buffer]:
    """Return one buffer per live range; ``fixed`` maps tensors to their fixed offsets in bytes."""
    buffers = []
    for index, live in enumerate(ranges):
        align = alignment_of(banded, live, WORKSPACE_ALIGNMENT)
        place = fixed.get(live.tensors[0]) if live.tensors else None
        name = f"{index} {live.name}"
        buffers.append(Buffer(name, live.start, live.stop, live.size_bytes, align, place))
    return buffers


def alignment_of(banded: Banded, live_range: LiveRange, workspace: int) -> int:
    """Return the alignment of a live range in bytes, which is ``workspace`` for workspace."""
    if live_range.workspace_of is not None:
        return workspace
    features = banded.network.features
    return max([1, *(features[banded.bands[t].feature].align for t in live_range.tensors)])


def input_offsets(banded: Banded, base: int = 0) -> dict[int, int]:
    """Return the offset of each band of the inputs that are held, which begin at ``base``."""
    features, places, start = banded.network.features, {}, base
    bases: dict[int, int] = {}
    for feature in banded.held:
        align = features[feature].align
        bases[feature] = start = -(-start // align) * align
        start += features[feature].size_bytes
    for tensor in banded.graph.inputs:
        band = banded.bands[tensor]
        if band.feature not in bases:
            continue
        places[tensor] = bases[band.feature] + band.first * features[band.feature].row_bytes
    return places


def held_bytes(banded: Banded) -> int:
    """Return the bytes that the resident inputs occupy together, padding included."""
    ends = [
        place + banded.graph.tensors[tensor].size_bytes
        for tensor, place in input_offsets(banded).items()
    ]
    return max(ends, default=0)


def input_alignment(banded: Banded) -> int:
    """Return the largest alignment of the resident inputs, in bytes."""
    features = banded.network.features
    return max((features[f].align for f in banded.held), default=1)
