"""Places the bands of a network in the memories of a board."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tvm_serenity.firmware.place.memory_map import MemoryMap, Room, spread
from tvm_serenity.firmware.program import Place
from tvm_serenity.graph import Role
from tvm_serenity.memory import LiveRange
from tvm_serenity.plan import Buffer, plan
from tvm_serenity.rows.memories import viewed
from tvm_serenity.rows.place import alignment_of, input_offsets
from tvm_serenity.rows.split import Banded
from tvm_serenity.rows.stream import Streaming


@dataclass(frozen=True)
class BandPlacement:
    """The placement of a network in bands: its tensors, and the workspace of its operators.

    ``by_rows``: the workspace of layers with row kernels, also of faster ones: one place, or a
    place for each band.
    """

    tensors: Mapping[int, Place]
    scratch: Mapping[int, Place]
    arena_bytes: Mapping[str, int]
    by_rows: Mapping[int, tuple[Place, ...]] = field(default_factory=dict)

    def beside(self, other: "BandPlacement") -> "BandPlacement":
        """Return both placements, which are in different memories."""
        return BandPlacement(
            {**self.tensors, **other.tensors},
            {**self.scratch, **other.scratch},
            {**self.arena_bytes, **other.arena_bytes},
            {**self.by_rows, **other.by_rows},
        )


def in_region(streaming: Streaming, region: str) -> BandPlacement:
    """Return the planned placement of the bands in the arena of ``region``."""
    regions = (region,) * len(streaming.ranges)
    arena = {region: streaming.arena_bytes}
    placed = MemoryMap(streaming.ranges, regions, streaming.plan.offsets, arena, True)
    placement = _placement(streaming.banded, placed)
    fixed = input_offsets(streaming.banded, streaming.input_base)
    held = {t: Place(region, offset) for t, offset in fixed.items()}
    return replace(placement, tensors={**placement.tensors, **held}, arena_bytes=arena)


def on_board(
    streaming: Streaming, room: Sequence[Room], alignment: int, time_limit_s: float
) -> tuple[MemoryMap, BandPlacement]:
    """Return the placement in the first memory that holds all bands, else in several memories.

    An input is one block in any case. If nothing fits, the result is one arena in the main memory.
    """
    whole = [one for one in room if streaming.arena_bytes <= one.arena_bytes]
    if not whole and len(room) > 1:
        ranges = _with_whole_inputs(streaming)
        alignments = [alignment_of(streaming.banded, r, alignment) for r in ranges]
        found = spread(ranges, room, alignments, time_limit_s)
        if found is not None:
            return found, _placement(streaming.banded, found)
    region = (whole or list(room))[0].region.name
    placement = in_region(streaming, region)
    regions = (region,) * len(streaming.ranges)
    offsets = tuple(streaming.plan.offsets)
    placed = MemoryMap(streaming.ranges, regions, offsets, dict(placement.arena_bytes), bool(whole))
    return placed, placement


def _with_whole_inputs(streaming: Streaming) -> list[LiveRange]:
    """Return the live ranges of the bands; an input is one range while any of its bands is live."""
    banded = streaming.banded
    network, found = banded.network, list(streaming.ranges)
    for feature in banded.held:
        tensors = {t for t in banded.graph.inputs if banded.bands[t].feature == feature}
        mine = [r for r in found if tensors & set(r.tensors)]
        if feature in network.contiguous and mine:
            continue
        known, stop = network.features[feature], max((r.stop for r in mine), default=1)
        found = [r for r in found if r not in mine]
        found.append(LiveRange(known.name, known.size_bytes, 0, stop, tuple(sorted(tensors))))
    return found


@dataclass(frozen=True)
class PlacedBands:
    """The placement of bands in fast memory, with its memory map, and beside it in slow memory.

    ``homes``: the offset in slow memory of each feature there that is no view.
    """

    memory: MemoryMap
    fast: BandPlacement
    slow: BandPlacement
    homes: Mapping[int, int]


def in_two_memories(streaming: Streaming, fast: str, slow: str, alignment: int) -> PlacedBands:
    """Return the bands in the arena of ``fast``, and the features in slow memory.

    A feature in slow memory has its bytes from the first op that touches it to the last one; inputs
    from the start, outputs to the end.
    """
    banded = streaming.banded
    network, order = banded.network, streaming.schedule.order
    root = viewed(network)
    last = len(order)
    spans = dict[int, tuple[int, int]]()
    for step, op in enumerate(order):
        touched = (*banded.graph.ops[op].inputs, *banded.graph.ops[op].outputs)
        for feature in {root[banded.bands[t].feature] for t in touched}:
            spans[feature] = spans.get(feature, (step, step))[0], step + 1
    spans |= {root[f]: (0, spans.get(root[f], (0, 1))[1]) for f in network.inputs}
    spans |= {root[f]: (spans.get(root[f], (0, 0))[0], last) for f in network.outputs}
    kept = [f for f in sorted(spans) if network.features[f].slow]
    sizes = [network.features[f].size_bytes for f in kept]
    buffers = [
        Buffer(f"{f}", *spans[f], size, alignment) for f, size in zip(kept, sizes, strict=True)
    ]
    found = plan(buffers)
    begins = dict(zip(kept, found.offsets, strict=True))
    tensors = {}
    for tensor, band in enumerate(banded.bands):
        known = network.features[band.feature]
        if known.slow and root[band.feature] in begins:
            apart = band.feature not in network.contiguous
            at = begins[root[band.feature]] + (band.first * known.row_bytes if apart else 0)
            tensors[tensor] = Place(slow, at)
    placed = in_region(streaming, fast)
    regions = (fast,) * len(streaming.ranges)
    offsets = tuple(streaming.plan.offsets)
    memory = MemoryMap(streaming.ranges, regions, offsets, dict(placed.arena_bytes), True)
    beside = BandPlacement(tensors, {}, {slow: found.arena_bytes})
    return PlacedBands(memory, placed, beside, begins)


def _placement(banded: Banded, placed: MemoryMap) -> BandPlacement:
    tensors, scratch = {}, {}
    for found, region, offset in zip(placed.ranges, placed.regions, placed.offsets, strict=True):
        if found.workspace_of is not None:
            scratch[found.workspace_of] = Place(region, offset)
        stored = [t for t in found.tensors if banded.graph.tensors[t].role is not Role.STATE]
        first = min((banded.bands[t].first for t in stored), default=0)
        for tensor in stored:
            band, at = banded.bands[tensor], offset
            if (
                band.feature not in banded.network.contiguous
            ):  # the bands of an input that is one block
                at += (band.first - first) * banded.network.features[band.feature].row_bytes
            tensors[tensor] = Place(region, at)
    return BandPlacement(tensors, scratch, placed.arena_bytes, _of_bands(banded, scratch))


def _of_bands(banded: Banded, scratch: Mapping[int, Place]) -> dict[int, tuple[Place, ...]]:
    """Return the workspace of layers by rows: one place for all bands, or one per band."""
    found: dict[int, dict[int, Place]] = {}
    for op, place in scratch.items():
        call = banded.calls[op]
        if banded.network.layers[call.layer].splits:
            found.setdefault(call.layer, {})[call.first] = place
    places = {layer: tuple(at[y] for y in sorted(at)) for layer, at in found.items()}
    return {layer: at[:1] if len(set(at)) == 1 else at for layer, at in places.items()}
