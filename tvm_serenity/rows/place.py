"""Where bands lie: those of an order, and the inputs that are in memory from the start."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tvm_serenity.memory import LiveRange, live_ranges
from tvm_serenity.plan import Buffer, Plan, PlanOptions
from tvm_serenity.rows.over import place_over
from tvm_serenity.rows.split import Banded

WORKSPACE_ALIGNMENT = 16
"""What kernels expect of their workspace, whatever they keep there; no core asks for more."""


def place_bands(
    banded: Banded, order: Sequence[int], options: PlanOptions, base: int = 0
) -> tuple[tuple[LiveRange, ...], Plan]:
    """Return the live ranges of an order and an offset for each.

    The bands of the inputs that lie in memory from the start are at fixed offsets, each input as
    one block from ``base`` on.
    """
    ranges = live_ranges(banded.graph, order)
    fixed = input_offsets(banded, base)
    buffers = buffers_of(banded, ranges, fixed)
    found = place_over(banded, order, ranges, buffers, options)
    # Rows that nothing reads are in memory at the start all the same.
    held = base + held_bytes(banded) if fixed else 0
    return ranges, replace(found, arena_bytes=max(found.arena_bytes, held))


def buffers_of(
    banded: Banded, ranges: Sequence[LiveRange], fixed: Mapping[int, int] = MappingProxyType({})
) -> list[Buffer]:
    """Return what is placed: a buffer for each live range; ``fixed``: where tensors lie already."""
    found = []
    for index, live in enumerate(ranges):
        align = alignment_of(banded, live, WORKSPACE_ALIGNMENT)
        place = fixed.get(live.tensors[0]) if live.tensors else None
        name = f"{index} {live.name}"
        found.append(Buffer(name, live.start, live.stop, live.size_bytes, align, place))
    return found


def alignment_of(banded: Banded, found: LiveRange, workspace: int) -> int:
    """Return how what lives in a range is aligned; ``workspace``: the alignment of that."""
    if found.workspace_of is not None:
        return workspace
    features = banded.network.features
    return max([1, *(features[banded.bands[t].feature].align for t in found.tensors)])


def input_offsets(banded: Banded, base: int = 0) -> dict[int, int]:
    """Where the bands of the resident inputs lie, the first input from ``base`` on."""
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
    """Bytes of the inputs that lie in memory from the start."""
    ends = [
        place + banded.graph.tensors[tensor].size_bytes
        for tensor, place in input_offsets(banded).items()
    ]
    return max(ends, default=0)


def input_alignment(banded: Banded) -> int:
    """What the place of the first input in memory must be a multiple of, in bytes."""
    features = banded.network.features
    return max((features[f].align for f in banded.resident), default=1)
