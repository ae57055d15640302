"""Compile a network for a board, unsplit or by rows, and describe the result for JSON."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf
from typing import Any

import tvm

from tvm_serenity.boards import Board
from tvm_serenity.firmware.check.calls import check
from tvm_serenity.firmware.compile.banded_program import banded_program, sources
from tvm_serenity.firmware.compile.compiled import Compiled
from tvm_serenity.firmware.compile.interface import interface
from tvm_serenity.firmware.compile.outputs import with_every_output
from tvm_serenity.firmware.compile.unsplit import compiled, kernels_of
from tvm_serenity.firmware.emit.table import tables
from tvm_serenity.firmware.isa import Extensions
from tvm_serenity.firmware.place.bands import BandPlacement, on_board
from tvm_serenity.firmware.place.memory_map import MemoryMap, Room, largest, rooms
from tvm_serenity.firmware.program import Program
from tvm_serenity.firmware.select.choices import as_called, of_rows
from tvm_serenity.firmware.select.rows import RowKernels, UncutError, row_kernels
from tvm_serenity.firmware.select.tiles import in_tiles, tileable
from tvm_serenity.firmware.select.workspace import upgraded_in_bands
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.quantize.choices import OFF
from tvm_serenity.relax.attributes import rounds_less
from tvm_serenity.relax.pipeline import Prepared
from tvm_serenity.relax.quantize import is_quantised
from tvm_serenity.relax.row_chains import work_of
from tvm_serenity.relax.rows_read import RowModule, read_rows
from tvm_serenity.rows.choose import (
    Choice,
    Goal,
    at_most_in_memory,
    check_splittable,
    choose,
    recomputed,
)
from tvm_serenity.rows.described import described
from tvm_serenity.rows.limits import Limits
from tvm_serenity.rows.network import Network
from tvm_serenity.rows.recompute import recompute
from tvm_serenity.rows.split import heights_of
from tvm_serenity.rows.stream import stream
from tvm_serenity.sliding.described import steps_of


@dataclass(frozen=True)
class NetworkCompiler:
    """Compiles a network (``module``: Relax, fresh) for a board with one or several strategies.

    Intermediate results that strategies share are computed once. ``settings`` apply to all of them.
    """

    module: tvm.IRModule
    name: str
    board: Board
    settings: Settings
    known: dict[str, Prepared] = field(default_factory=dict, init=False, repr=False)
    cut: dict[bool, RowKernels] = field(default_factory=dict, init=False, repr=False)
    uncut: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    def ready(self, rewrite: str = "") -> Prepared:
        """Return the lowered network, rewritten by the named rules."""
        if rewrite not in self.known:
            self.known[rewrite] = kernels_of(self.module, replace(self.settings, rewrite=rewrite))
        return self.known[rewrite]

    def changes(self, rewrite: str) -> bool:
        """Return whether rewriting by these rules changes the network."""
        found = self.ready(rewrite).rewriting
        return found is not None and found.changed

    def _read(self) -> RowModule:
        ready = self.ready()
        return read_rows(ready.plain, self.name, ready.target, self.uncut)

    def rows(self, overlap: bool = False) -> RowKernels:
        """Return the network by rows; raise :class:`InputError` if no layer can be split.

        ``overlap``: rows may overlap input rows that are not read again.
        """
        kernels = self.layers(overlap)
        check_splittable(kernels.network)
        return kernels

    def layers(self, overlap: bool = False) -> RowKernels:
        """Return the kernels by rows, whether or not a layer can be split."""
        if overlap not in self.cut:
            self.settings.notify("reading rows")
            kernels = None
            while kernels is None:
                try:
                    kernels = self._row_kernels(overlap)
                except UncutError as error:  # these layers stay unsplit
                    self.uncut.update(error.kernels)
            self.cut[overlap] = kernels
        return self.cut[overlap]

    def _row_kernels(self, overlap: bool) -> RowKernels:
        return row_kernels(
            self._read(),
            tuned=self.settings.tuned,
            alignment=self.board.core.alignment_bytes,
            core=Extensions.of(self.board.core),
            overlap=overlap,
        )

    def unsplit(self, how: Settings) -> Compiled:
        """Return the network compiled operator by operator with the settings ``how``."""
        made = compiled(self.module, self.ready(how.rewrite), self.name, self.board, how)
        of_region = {tensor: i for i, tensor in enumerate(made.tensors)}
        results = [of_region[t] for t in made.region.results]
        return with_every_output(made, interface(self.module), results)

    def in_bands(self, chosen: Choice, overlap: bool = False) -> Compiled:
        """Return the network compiled in the bands ``chosen`` for ``rows(overlap)``.

        Its chains of layers run in the tiles that were chosen.
        """
        best, kernels = chosen.best, self.rows(overlap)
        if chosen.recomputed is not None:
            kernels = in_tiles(kernels, chosen.recomputed.tiles)
        alignment = self.board.core.alignment_bytes
        room = rooms(self.board, self.settings.stack_bytes)
        placed, placement = on_board(best, room, alignment, self.settings.search_seconds)
        network = kernels.network
        known = interface(self.module).of_tensors(network.inputs, kernels.rows.results)

        def program(taken: RowKernels, found: BandPlacement) -> Program:
            return banded_program(taken, best, self.name, found, alignment, known)

        return self.from_rows(kernels, chosen, placed, placement, program)

    def from_rows(
        self,
        kernels: RowKernels,
        chosen: Choice,
        placed: MemoryMap,
        placement: BandPlacement,
        program: Callable[[RowKernels, BandPlacement], Program],
    ) -> Compiled:
        """Return a network in rows compiled, with workspace upgrades where they fit.

        ``program`` builds the program from the final kernels and their placement.
        """
        best, settings, ready = chosen.best, self.settings, self.ready()
        alignment = self.board.core.alignment_bytes
        met = placed.fits and settings.allows(sum(placed.arena_bytes.values()))
        room = rooms(self.board, settings.stack_bytes)
        more = self._more_room(placed, room) if settings.grows and met else {}
        taken, placed, placement = upgraded_in_bands(
            kernels, best, placed, placement, alignment, more
        )
        written = program(taken, placement)
        made = Compiled(
            program=written,
            lowered=kernels.rows.lowered,
            region=kernels.rows.region,
            sources=sources(kernels),
            tensors=kernels.rows.tensor_of,
            placed=placed,
            peak_bytes=best.schedule.peak_bytes,
            lower_bound_bytes=best.lower_bound_bytes,
            kept_float=ready.kept_float,
            folded=ready.folded,
            choices=as_called(of_rows(kernels, taken, settings.tuned), written),
            chosen=replace(chosen, met=met),
        )
        return with_every_output(made, interface(self.module), kernels.rows.results)

    def _more_room(self, placed: MemoryMap, room: Sequence[Room]) -> dict[str, int]:
        """Return the bytes to which the arena of each region may grow for workspace upgrades.

        If a limit on the sum of arenas is set, only the largest arena grows.
        """
        limit, held = self.settings.limit_bytes, placed.arena_bytes
        if limit is None:
            return {one.region.name: one.arena_bytes for one in room if one.region.name in held}
        main = max(held, key=lambda name: held[name])
        of_main = next(one.arena_bytes for one in room if one.region.name == main)
        return {main: min(of_main, held[main] + limit - sum(held.values()))}


def by_rows(maker: NetworkCompiler) -> Compiled:
    """Return the network in bands of the requested height, or the coarsest that fit."""
    settings = maker.settings
    network = maker.rows(settings.overlap).network
    settings.notify("ordering and placing bands")
    most_bytes = settings.most_bytes(largest(rooms(maker.board, settings.stack_bytes)))
    chosen = _chosen(network, settings, most_bytes, _limits(settings))
    if settings.recompute is not None:
        chosen = _again(maker, chosen, settings.recompute, most_bytes)
    return maker.in_bands(chosen, settings.overlap)


def checked(made: Compiled) -> None:
    """Replay the calls, and check the order and placement of bands with the naive checkers."""
    check(made.program)
    if made.chosen is not None:
        made.chosen.best.check()


def facts(made: Compiled) -> dict[str, Any]:
    """Return the JSON object for the order, placement, bands, and operators kept in float."""
    rows = None
    if made.chosen is not None:
        table_bytes = 0 if made.program.straight else tables(made.program).size_bytes
        rows = {**described(made.chosen), "table_bytes": table_bytes}
    return {
        "peak_bytes": made.peak_bytes,
        "lower_bound_bytes": made.lower_bound_bytes,
        "steps": len(made.program.calls),
        "kernels": len(made.program.kernels),
        "kept_float": list(made.kept_float),
        "channels": made.folded.json(),
        "choices": [choice.json() for choice in made.choices],
        "tried": [asdict(way) for way in made.tried],
        "rows": rows,
        "sliding": None if made.moved is None else steps_of(made.moved),
    }


def loose(module: tvm.IRModule, settings: Settings) -> str:
    """Return why outputs may differ from the model's runtime by more than the tolerance, or "".

    ``module`` is Relax as imported.
    """
    off = settings.quantized == OFF and is_quantised(module)
    return "computed in float" if off or rounds_less(module["main"]) else ""


def _again(maker: NetworkCompiler, plain: Choice, factor: float, most_bytes: int) -> Choice:
    """Return the better of ``plain`` and the same bands with chains of layers in tiles.

    If no band height was requested and ``plain`` fits, nothing is recomputed.
    """
    settings, kernels = maker.settings, maker.rows()  # without overlap: overlaps are placed later
    enough = settings.bands is None and plain.met
    settings.notify("searching for chains to recompute")
    found = recompute(
        kernels.network,
        () if enough else tileable(kernels),
        work_of(kernels.rows),
        factor,
        streamed=settings.stream_input,
        rows=settings.bands or 1,
    )
    network, limits = maker.rows(settings.overlap).network, _limits(settings).of_tiles
    return recomputed(
        plain, found, network, lambda tiles: _chosen(tiles, settings, most_bytes, limits)
    )


def _limits(settings: Settings) -> Limits:
    return Limits(inf if settings.time_limit_s is None else settings.time_limit_s)


def _chosen(network: Network, settings: Settings, room: int, limits: Limits) -> Choice:
    goal = Goal(max(room, 0))
    if settings.bands is None:
        return choose(network, goal, streamed=settings.stream_input, limits=limits)
    heights = heights_of(network, settings.bands)
    found = stream(network, heights, streamed=settings.stream_input, limits=limits)
    found = at_most_in_memory(found, limits)
    return Choice(found, goal.met(found), (found,), found.seconds)
