"""Compiles a network for a board as one step of incremental inference on a stream."""

from collections.abc import Sequence
from dataclasses import replace

from tvm_serenity.firmware.compile.banded_program import BandedMaker
from tvm_serenity.firmware.compile.compiled import Compiled
from tvm_serenity.firmware.compile.driver import NetworkCompiler
from tvm_serenity.firmware.compile.interface import interface
from tvm_serenity.firmware.compile.state_steps import as_step, updates_in_place
from tvm_serenity.firmware.incremental import KeptRows, Moving, State
from tvm_serenity.firmware.place.bands import BandPlacement
from tvm_serenity.firmware.place.memory_map import MemoryMap, Room, largest, rooms
from tvm_serenity.firmware.program import Bands, Fed, Place, Program
from tvm_serenity.firmware.select.rows import RowKernels
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.relax.attributes import first_values
from tvm_serenity.relax.rows_reads import operations, row_reads
from tvm_serenity.rows.choose import Choice
from tvm_serenity.rows.limits import Limits
from tvm_serenity.sliding import MovedWindow, SlidingStep, moved_window, sliding_step
from tvm_serenity.sliding.check import check_windows
from tvm_serenity.sliding.choose import curve, within_bytes


def in_steps(maker: NetworkCompiler) -> Compiled:
    """Return the network as one step of incremental inference of ``settings.sliding`` new rows.

    The step retains all rows that it can, or those that give the least work within the board's
    memory. All memory lies in one region. Raises :class:`InputError` if no row can be retained.
    A network that updates a state in place is unsplit (``state_steps``).
    """
    if updates_in_place(maker.ready().plain):
        return as_step(maker)
    settings, kernels = maker.settings, maker.layers()
    assert settings.sliding is not None
    settings.notify("ordering and placing a step")
    reads = row_reads(kernels.rows)
    states = first_values(maker.module["main"])
    window = moved_window(kernels.network, settings.sliding, reads, len(states))
    room = rooms(maker.board, settings.stack_bytes)
    found = _fitting(window, kernels, settings, settings.most_bytes(largest(room)))
    check_windows(found, reads)
    placed, placement = _placement(found, room)
    network, best = kernels.network, found.streaming
    known = interface(maker.module).of_tensors(network.inputs, kernels.rows.results)
    given = {window.source: known[network.inputs[0]]}

    def program(taken: RowKernels, placement: BandPlacement) -> Program:
        made = _StepMaker(taken, found, _in_all_rows(found, placement), states)
        name, alignment = maker.name, maker.board.core.alignment_bytes
        program = made.program(name, alignment, {**known, **given})
        outputs = program.outputs[: len(program.outputs) - len(states)]
        assert program.moving is not None
        moving = replace(program.moving, compared=settings.windows)
        return replace(program, inputs=(), outputs=outputs, moving=moving)

    chosen = Choice(best, True, (best,), best.seconds)
    return maker.from_rows(kernels, chosen, placed, placement, program)


def _fitting(
    window: MovedWindow, kernels: RowKernels, settings: Settings, most: int
) -> SlidingStep:
    """Return the step of least work whose arena fits ``most`` bytes, else of the smallest arena."""
    limits = Limits.within(settings.time_limit_s)
    found = sliding_step(window.steady(), limits)
    if found.arena_bytes <= most:
        return found
    settings.notify("searching for rows to recompute")
    points = curve(window, operations(kernels.rows), limits)
    return (within_bytes(points, most) or points[-1]).step


def _placement(found: SlidingStep, room: Sequence[Room]) -> tuple[MemoryMap, BandPlacement]:
    """Return the placement of a step in the first memory that holds all of it."""
    best = found.streaming
    fitting = [one for one in room if best.arena_bytes <= one.arena_bytes]
    region = (fitting or list(room))[0].region.name
    tensors, scratch = {}, {}
    for r, offset in zip(best.ranges, best.plan.offsets, strict=True):
        tensors.update({t: Place(region, offset) for t in r.tensors})
        if r.workspace_of is not None:
            scratch[r.workspace_of] = Place(region, offset)
    arena = {region: best.arena_bytes}
    regions = (region,) * len(best.ranges)
    placed = MemoryMap(best.ranges, regions, tuple(best.plan.offsets), arena, bool(fitting))
    return placed, BandPlacement(tensors, scratch, arena)


def _in_all_rows(found: SlidingStep, placement: BandPlacement) -> BandPlacement:
    """Return the placement with a workspace for every row of a layer whose rows have their own.

    Rows that the step does not compute get the workspace of the first row; it is never used.
    """
    by_rows = {}
    for layer, places in placement.by_rows.items():
        known = found.steady.network.layers[layer]
        made = found.steady.made[known.outputs[0]]
        if len(places) > 1 and not known.sums:
            each = dict(zip(made, places, strict=True))
            height = found.steady.network.rows(known.outputs[0])
            places = tuple(each.get(y, places[0]) for y in range(height))
        by_rows[layer] = places
    return replace(placement, by_rows=by_rows)


class _StepMaker(BandedMaker):
    """Builds the program of a step: retained rows are blocks, and unused rows have no place."""

    def __init__(
        self,
        kernels: RowKernels,
        found: SlidingStep,
        placement: BandPlacement,
        states: Sequence[int],
    ) -> None:
        super().__init__(kernels, found.streaming, placement)
        self.found = found
        self.steady = found.steady
        pairs = zip(found.steady.states, states, strict=True)
        self.states = tuple(State(f, made, first) for (f, made), first in pairs)
        bands = found.streaming.banded.bands
        kept = {*found.blocks.values(), *(t for stored in found.stores.values() for t in stored)}
        self.made = {(band.feature, band.first): t for t, band in enumerate(bands) if t not in kept}

    def fed(self) -> Fed:
        """The moving window; its last rows arrive."""
        known = self.network.features[self.steady.source]
        return Fed(self.steady.source, known.height, known.row_bytes)

    def moving(self) -> Moving:
        """The blocks of retained rows, and by how many rows they move."""
        kept = []
        own = {state.tensor for state in self.states}
        for f in (f for f in self.found.blocks if f not in own):
            stores = (self.placement.tensors[t].offset_bytes for t in self.found.stores.get(f, ()))
            kept.append(KeptRows(f, *self.steady.spans[f], self.steady.shifts[f], tuple(stores)))
        return Moving(self.steady.step, self.steady.steps_to_fill, tuple(kept), self.states)

    def bands(self, feature: int) -> Bands:
        """Return a place for every row; unused rows get the start of the arena."""
        root = self.found.shown.get(feature, feature)
        height, region = self.network.rows(feature), next(iter(self.placement.arena_bytes))
        late = self.steady.spans[feature][0] > 0  # no layer reads the first rows of the input
        if (feature in self.network.contiguous and not late) or root != feature:
            block = self.found.blocks.get(root, self.made.get((root, 0)))
            place = Place(region, 0) if block is None else self.placement.tensors[block]
            return Bands((place,), height, height)
        return Bands(tuple(self.row(feature, y, region) for y in range(height)), height)

    def row(self, feature: int, y: int, region: str) -> Place:
        """Return the place of a row."""
        first, end = self.steady.spans[feature]
        if first <= y < end:
            block = self.placement.tensors[self.found.blocks[feature]]
            far = (y - first) * self.network.features[feature].row_bytes
            return Place(block.region, block.offset_bytes + far)
        made = self.made.get((feature, y))
        return Place(region, 0) if made is None else self.placement.tensors[made]
