"""Place the bands of a split network in the memories of a board."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tvm_serenity.firmware.place.memory_map import MemoryMap, Room, spread
from tvm_serenity.firmware.program import Place
from tvm_serenity.graph import Role
from tvm_serenity.memory import LiveRange
from tvm_serenity.rows.place import alignment_of, input_offsets
from tvm_serenity.rows.split import Banded
from tvm_serenity.rows.stream import Streaming


@dataclass(frozen=True)
class BandPlacement:
    """The places of a split network's bands (``tensors``) and of the workspace of operators.

    ``by_rows``: the workspace of layers with row kernels, including workspace upgrades: one place
    for all bands, or one for each band.
    """

    tensors: Mapping[int, Place]
    scratch: Mapping[int, Place]
    arena_bytes: Mapping[str, int]
    by_rows: Mapping[int, tuple[Place, ...]] = field(default_factory=dict)


def in_region(streaming: Streaming, region: str) -> BandPlacement:
    """Return the bands as they were planned, in one arena in ``region``."""
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
    """Return the bands in the first memory that holds all of them, else spread over all memories.

    An input remains one block also if the bands are spread. If nothing fits, the result is a single
    arena in the main memory.
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
    """Return the live ranges with the bands of each input merged into one range."""
    banded = streaming.banded
    network, found = banded.network, list(streaming.ranges)
    for feature in banded.resident:
        tensors = {t for t in banded.graph.inputs if banded.bands[t].feature == feature}
        mine = [r for r in found if tensors & set(r.tensors)]
        if feature in network.contiguous and mine:
            continue
        known, stop = network.features[feature], max((r.stop for r in mine), default=1)
        found = [r for r in found if r not in mine]
        found.append(LiveRange(known.name, known.size_bytes, 0, stop, tuple(sorted(tensors))))
    return found


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
            ):  # the bands of an unsplit input follow each other
                at += (band.first - first) * banded.network.features[band.feature].row_bytes
            tensors[tensor] = Place(region, at)
    return BandPlacement(tensors, scratch, placed.arena_bytes, _of_bands(banded, scratch))


def _of_bands(banded: Banded, scratch: Mapping[int, Place]) -> dict[int, tuple[Place, ...]]:
    """Return the workspace of layers in rows: one place if all bands share it, or one per band."""
    found: dict[int, dict[int, Place]] = {}
    for op, place in scratch.items():
        call = banded.calls[op]
        if banded.network.layers[call.layer].splits:
            found.setdefault(call.layer, {})[call.first] = place
    places = {layer: tuple(at[y] for y in sorted(at)) for layer, at in found.items()}
    return {layer: at[:1] if len(set(at)) == 1 else at for layer, at in places.items()}
