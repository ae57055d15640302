"""Faster kernels of rows where the arena of bands has room for their workspace.

The search for bands ignores this workspace, so the arena keeps its size to the byte, or grows with
``--workspace grow``. The workspace of a call lies where no band lives while the call runs. All
calls of a layer share one place; where none suits all, each call has its own in the tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tvm_serenity.firmware.place.bands import Lying
from tvm_serenity.firmware.place.memory_map import Placed
from tvm_serenity.firmware.program import Kernel, Place
from tvm_serenity.firmware.select.code_size import LayerOptions, without_little_use
from tvm_serenity.firmware.select.rows import LayerCode, RowKernels
from tvm_serenity.memory import LiveRange
from tvm_serenity.rows.stream import Streaming


@dataclass(frozen=True)
class _Found:
    """Live ranges with their places, and the bytes that an arena may have in each region."""

    placed: Placed
    alignment: int
    room: Mapping[str, int]

    def places(self, bands: Sequence[Sequence[int]], size_bytes: int) -> tuple[Place, ...] | None:
        """Return a place that is free in all ``bands``, or else one for each; None without.

        ``bands``: the steps in which each is made.
        """
        one = self._place([step for steps in bands for step in steps], size_bytes)
        if one is not None:
            return (one,)
        each = [self._place(steps, size_bytes) for steps in bands]
        found = [place for place in each if place is not None]
        return tuple(found) if len(found) == len(each) else None

    def _place(self, steps: Sequence[int], size_bytes: int) -> Place | None:
        """The first place that is free while these steps run."""
        live = [i for i, r in enumerate(self.placed.ranges) if _meets(r, steps)]
        for region in self.placed.arena_bytes:
            at = self._free(live, region, size_bytes)
            if at is not None:
                return Place(region, at)
        return None

    def _free(self, live: Sequence[int], region: str, size_bytes: int) -> int | None:
        """The lowest free offset in a region."""
        taken = sorted(
            (self.placed.offsets[i], self.placed.offsets[i] + self.placed.ranges[i].size_bytes)
            for i in live
            if self.placed.regions[i] == region
        )
        at = 0
        for start, stop in taken:
            if at + size_bytes <= start:
                return at
            at = max(at, -(-stop // self.alignment) * self.alignment)
        return at if at + size_bytes <= self.room[region] else None


def with_room_by_rows(
    kernels: RowKernels,
    streaming: Streaming,
    placed: Placed,
    lying: Lying,
    alignment: int,
    room: Mapping[str, int],
) -> tuple[RowKernels, Placed, Lying]:
    """Return ``kernels`` with the faster ones that find room among the bands, and their places.

    ``room``: the bytes that arenas of regions may have, where that is more than they have.
    """
    most = {name: max(held, room.get(name, 0)) for name, held in placed.arena_bytes.items()}
    calls: dict[int, dict[int, list[int]]] = {}
    for position, op in enumerate(streaming.schedule.order):
        call = streaming.banded.calls[op]
        calls.setdefault(call.layer, {}).setdefault(call.first, []).append(position)
    found, code = _Found(placed, alignment, most), list(kernels.code)
    places: dict[int, tuple[Place, ...]] = {}
    for layer, made in enumerate(kernels.code):
        if made is None or layer not in calls or not _in_rows(kernels, layer):
            continue
        bands = [calls[layer][first] for first in sorted(calls[layer])]
        for one in made.candidates:
            if not one.workspace_bytes:
                break
            at = found.places(bands, one.workspace_bytes)
            if at is not None and (len(at) == 1 or layer != streaming.banded.feeding):
                code[layer], places[layer] = one, at
                break
    for layer, one in _worth_it(kernels, code, calls).items():
        code[layer] = one
        if not one.workspace_bytes:
            places.pop(layer, None)
    ends = dict(placed.arena_bytes)
    for layer, at in places.items():
        used = code[layer]
        for place in at:
            bytes_to = place.offset_bytes + (used.workspace_bytes if used else 0)
            ends[place.region] = max(ends[place.region], bytes_to)
    placed = replace(placed, arena_bytes=ends)
    lying = replace(lying, arena_bytes=ends, by_rows={**lying.by_rows, **places})
    return replace(kernels, code=_shared(code)), placed, lying


def _in_rows(kernels: RowKernels, layer: int) -> bool:
    kernel = kernels.rows.kernels[layer]
    return kernel is not None and kernel.rows is not None


def _worth_it(
    kernels: RowKernels, code: Sequence[LayerCode | None], calls: Mapping[int, object]
) -> dict[int, LayerCode]:
    """What layers in rows take of kernels that are worth their code."""
    layers: dict[int, LayerOptions] = {}
    for layer, made in enumerate(code):
        least = kernels.code[layer]
        if made is None or made.tuned is None or least is None or layer not in calls:
            continue
        room = made.workspace_bytes
        others = [c.tuned for c in least.candidates if c.workspace_bytes <= room and c.tuned]
        options = [made.tuned, *(one for one in others if one is not made.tuned)]
        rows = kernels.network.rows(kernels.network.layers[layer].outputs[0])
        layers[layer] = LayerOptions(options, rows if _in_rows(kernels, layer) else 1)
    found = without_little_use(layers)
    chosen = {}
    for layer, tuned in found.items():
        least = kernels.code[layer]
        assert least is not None
        chosen[layer] = next(c for c in least.candidates if c.tuned is tuned)
    return chosen


def _meets(live: LiveRange, positions: Sequence[int]) -> bool:
    return any(live.start <= p < live.stop for p in positions)


def _shared(code: Sequence[LayerCode | None]) -> tuple[LayerCode | None, ...]:
    """The same with one kernel where several do the same."""
    known: dict[object, Kernel] = {}

    def one(kernel: Kernel) -> Kernel:
        return known.setdefault((kernel.params, kernel.body), kernel)

    return tuple(
        made and replace(made, kernels=tuple(one(k) for k in made.kernels)) for made in code
    )
