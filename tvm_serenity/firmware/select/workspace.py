"""Workspace upgrades: faster kernels whose workspace fits into the arena.

The arena stays as small as without them, or grows within a limit (``--workspace grow``). An unsplit
network is ordered and placed again for each upgrade that is tried. Bands keep their places: the
workspace of a call lies in bytes that are free while it runs, at one place for all calls of a
layer if possible, else at a place for each call, which the tables list.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tvm_serenity.firmware.place.bands import BandPlacement
from tvm_serenity.firmware.place.memory_map import MemoryMap
from tvm_serenity.firmware.program import Kernel, Place
from tvm_serenity.firmware.select.code_size import LayerOptions, without_little_use
from tvm_serenity.firmware.select.lowered import LoweredLayer
from tvm_serenity.firmware.select.rows import RowKernels
from tvm_serenity.firmware.select.unsplit import UnsplitKernels
from tvm_serenity.memory import LiveRange, live_bytes
from tvm_serenity.plan import Plan
from tvm_serenity.rows.stream import Streaming
from tvm_serenity.search.deadline import seconds_left

Ordered = tuple[tuple[int, ...], tuple[LiveRange, ...], Plan, int, int]
"""An order, its live ranges, their plan, the lower bound of the arena, and the order's peak."""


def _worth_their_code(
    taken: Mapping[int, LoweredLayer],
    known: Mapping[int, LoweredLayer | None],
    runs: Mapping[int, int],
) -> dict[int, LoweredLayer]:
    """Return the kernels of layers without those not worth their code size.

    ``taken``: the chosen kernels; no layer gets more workspace. ``known``: the layers with their
    candidates. ``runs``: the number of calls of each layer.
    """
    candidates = {i: found.candidates for i, found in known.items() if found is not None}
    layers = {}
    for i, made in taken.items():
        assert made.call is not None
        size = made.workspace_bytes
        others = [one.call for one in candidates[i] if one.workspace_bytes <= size and one.call]
        options = [made.call, *(call for call in others if call is not made.call)]
        layers[i] = LayerOptions(options, runs[i])
    found = without_little_use(layers)
    return {i: next(one for one in candidates[i] if one.call is call) for i, call in found.items()}


def upgraded(
    kernels: UnsplitKernels,
    ordered: Callable[[UnsplitKernels, int | None], Ordered],
    limit_bytes: int = 0,
) -> tuple[UnsplitKernels, Ordered]:
    """Return the fastest kernels whose arena is as small as that of ``kernels``, and the order.

    ``limit_bytes``: the arena may grow to this size. The fastest kernels whose workspace fits
    beside the live tensors are tried together; if they do not fit after all, one by one until the
    deadline.
    """
    graph = kernels.graph()
    least = ordered(kernels, None)
    arena_bytes = max(least[2].arena_bytes, limit_bytes)
    live = dict(zip(least[0], live_bytes(graph, least[0]), strict=True))
    over = kernels.settings.overlap  # with overlap, less is live than the sum of sizes
    wanted: dict[int, list[LoweredLayer]] = {}
    for i, made in kernels.least.items():
        room = arena_bytes if over else arena_bytes - live[i] + made.workspace_bytes
        at = [one.call for one in made.candidates].index(made.call) if made.candidates else 0
        held = [one for one in made.candidates[:at] if one.workspace_bytes <= room]
        if held:
            wanted[i] = held
    if not wanted:
        return _leaner(kernels, least, ordered)
    chosen = kernels.taking({i: held[0] for i, held in wanted.items()})
    placed = ordered(chosen, arena_bytes)
    if placed[2].arena_bytes <= arena_bytes:
        return _leaner(chosen, placed, ordered)
    taken: dict[int, LoweredLayer] = {}
    best = least
    for i, held in wanted.items():
        if seconds_left() == 0:
            break
        for one in held:
            placed = ordered(kernels.taking({**taken, i: one}), arena_bytes)
            if placed[2].arena_bytes <= arena_bytes:
                taken[i] = one
                best = placed
                break
    return _leaner(kernels.taking(taken), best, ordered)


def _leaner(
    kernels: UnsplitKernels,
    placed: Ordered,
    ordered: Callable[[UnsplitKernels, int | None], Ordered],
) -> tuple[UnsplitKernels, Ordered]:
    """Return the kernels without those not worth their code size, in no larger arena."""
    taken = {i: made for i, made in kernels.code.items() if made.call is not None}
    chosen = _worth_their_code(taken, kernels.least, dict.fromkeys(taken, 1))
    if all(made.call is taken[i].call for i, made in chosen.items()):
        return kernels, placed
    leaner = kernels.leaner(
        {i: made for i, made in chosen.items() if made.call is not taken[i].call}
    )
    again = ordered(leaner, placed[2].arena_bytes)
    return (leaner, again) if again[2].arena_bytes <= placed[2].arena_bytes else (kernels, placed)


@dataclass(frozen=True)
class _FreeSpace:
    """Placed live ranges, and the bytes that the arena of each region may have."""

    placed: MemoryMap
    alignment: int
    room: Mapping[str, int]

    def places(self, bands: Sequence[Sequence[int]], size_bytes: int) -> tuple[Place, ...] | None:
        """Return a place that is free in all ``bands``, or a place for each; None if there is none.

        ``bands``: the steps in which each band is computed.
        """
        one = self._place([step for steps in bands for step in steps], size_bytes)
        if one is not None:
            return (one,)
        each = [self._place(steps, size_bytes) for steps in bands]
        found = [place for place in each if place is not None]
        return tuple(found) if len(found) == len(each) else None

    def _place(self, steps: Sequence[int], size_bytes: int) -> Place | None:
        """Return the first place that is free during ``steps``, None without."""
        live = [i for i, r in enumerate(self.placed.ranges) if _meets(r, steps)]
        for region in self.placed.arena_bytes:
            at = self._free(live, region, size_bytes)
            if at is not None:
                return Place(region, at)
        return None

    def _free(self, live: Sequence[int], region: str, size_bytes: int) -> int | None:
        """Return the lowest free offset in a region, None without."""
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


def upgraded_in_bands(
    kernels: RowKernels,
    streaming: Streaming,
    placed: MemoryMap,
    placement: BandPlacement,
    alignment: int,
    room: Mapping[str, int],
) -> tuple[RowKernels, MemoryMap, BandPlacement]:
    """Return ``kernels`` with faster ones whose workspace fits among the bands, and the places.

    ``room``: the bytes that the arenas may grow to, by region.
    """
    most = {name: max(held, room.get(name, 0)) for name, held in placed.arena_bytes.items()}
    calls: dict[int, dict[int, list[int]]] = {}
    for position, op in enumerate(streaming.schedule.order):
        call = streaming.banded.calls[op]
        calls.setdefault(call.layer, {}).setdefault(call.first, []).append(position)
    found, code = _FreeSpace(placed, alignment, most), list(kernels.code)
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
    options = {
        layer: made
        for layer, made in enumerate(code)
        if made is not None and made.call is not None and layer in calls
    }
    runs = {i: _rows(kernels, i) for i in options}
    for layer, one in _worth_their_code(options, dict(enumerate(kernels.code)), runs).items():
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
    placement = replace(placement, arena_bytes=ends, by_rows={**placement.by_rows, **places})
    return replace(kernels, code=_shared(code)), placed, placement


def _rows(kernels: RowKernels, layer: int) -> int:
    """Return the number of calls of a layer's kernel."""
    return (
        kernels.network.rows(kernels.network.layers[layer].outputs[0])
        if _in_rows(kernels, layer)
        else 1
    )


def _in_rows(kernels: RowKernels, layer: int) -> bool:
    kernel = kernels.rows.kernels[layer]
    return kernel is not None and kernel.rows is not None


def _meets(live: LiveRange, positions: Sequence[int]) -> bool:
    return any(live.start <= p < live.stop for p in positions)


def _shared(code: Sequence[LoweredLayer | None]) -> tuple[LoweredLayer | None, ...]:
    """Return the layers with one kernel in place of equal ones."""
    known: dict[object, Kernel] = {}

    def one(kernel: Kernel) -> Kernel:
        return known.setdefault((kernel.params, kernel.body), kernel)

    return tuple(
        made and replace(made, kernels=tuple(one(k) for k in made.kernels)) for made in code
    )
