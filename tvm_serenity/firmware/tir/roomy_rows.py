"""Faster kernels of rows where the arena of bands has room for their workspace.

Order and places of the bands are as they were found without it, so the arena is the same to the
byte. All calls of a layer have their workspace at one place, which no band has that lives while one
of them runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tvm_serenity.firmware.memory import Placed
from tvm_serenity.firmware.program import Kernel, Place
from tvm_serenity.firmware.tir.lying import Lying
from tvm_serenity.firmware.tir.rows import LayerCode, RowKernels
from tvm_serenity.memory import LiveRange
from tvm_serenity.rows.stream import Streaming


@dataclass(frozen=True)
class _Found:
    """Live ranges with their places."""

    placed: Placed
    alignment: int

    def place(self, live: Sequence[int], size_bytes: int) -> Place | None:
        """Return the first place beside the ``live`` ranges, None where there is none."""
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
        return at if at + size_bytes <= self.placed.arena_bytes[region] else None


def with_room_by_rows(
    kernels: RowKernels, streaming: Streaming, placed: Placed, lying: Lying, alignment: int
) -> tuple[RowKernels, Lying]:
    """Return ``kernels`` with the faster ones that find room among the bands, and their places."""
    calls: dict[int, list[int]] = {}
    for position, op in enumerate(streaming.schedule.order):
        calls.setdefault(streaming.banded.calls[op].layer, []).append(position)
    found, code, places = _Found(placed, alignment), list(kernels.code), {}
    for layer, made in enumerate(kernels.code):
        if made is None or not made.faster or layer not in calls:
            continue
        live = [i for i, r in enumerate(placed.ranges) if _meets(r, calls[layer])]
        for one in made.faster:
            place = found.place(live, one.workspace_bytes)
            if place is not None:
                code[layer], places[layer] = one, place
                break
    return replace(kernels, code=_shared(code)), replace(lying, by_rows=places)


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
