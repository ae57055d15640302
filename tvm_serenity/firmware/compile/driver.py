"""Compiles a network for a board, unsplit or in bands of rows, and describes it as JSON."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf
from typing import Any

import tvm

from tvm_serenity.boards import Board
from tvm_serenity.firmware.check.calls import check
from tvm_serenity.firmware.check.transfers import check_bands, check_program
from tvm_serenity.firmware.compile.banded_program import banded_program, sources
from tvm_serenity.firmware.compile.compiled import Compiled
from tvm_serenity.firmware.compile.interface import interface
from tvm_serenity.firmware.compile.outputs import with_every_output
from tvm_serenity.firmware.compile.streamed import about_transfers
from tvm_serenity.firmware.compile.unsplit import compiled, kernels_of, with_copies, written
from tvm_serenity.firmware.emit.table import tables
from tvm_serenity.firmware.isa import Extensions
from tvm_serenity.firmware.place.bands import BandPlacement, on_board
from tvm_serenity.firmware.place.memory_map import MemoryMap, Room, largest, rooms
from tvm_serenity.firmware.program import Program
from tvm_serenity.firmware.select.choices import as_called, of_rows
from tvm_serenity.firmware.select.rows import RowKernels, UncutError, in_bands, row_kernels
from tvm_serenity.firmware.select.tiles import in_tiles, tileable
from tvm_serenity.firmware.select.unsplit import UnsplitKernels
from tvm_serenity.firmware.select.workspace import upgraded_in_bands
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.offchip.transfers import certificate, check_transfers
from tvm_serenity.options.memory import FLASH, RAM
from tvm_serenity.options.speed import LEAST
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
from tvm_serenity.rows.stream import Streaming, stream


@dataclass(frozen=True)
class NetworkCompiler:
    """Compiles a network for a board, with one strategy or several.

    ``module``: the network in Relax, as it was read. ``settings`` are common to all strategies;
    their common work is done once.
    """

    module: tvm.IRModule
    name: str
    board: Board
    settings: Settings
    known: dict[str, Prepared] = field(default_factory=dict, init=False, repr=False)
    written: dict[tuple[str, bool, str, int | None], UnsplitKernels] = field(
        default_factory=dict, init=False, repr=False
    )
    whole: list[tuple[Settings, Compiled]] = field(default_factory=list, init=False, repr=False)
    cut: dict[bool, RowKernels] = field(default_factory=dict, init=False, repr=False)
    uncut: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    def storing(self, weights: str, limit_bytes: int | None = None) -> "NetworkCompiler":
        """Return the compiler of the same network that stores weights in another way.

        ``weights``, ``limit_bytes``: values of the options ``weights``, ``constants_limit_bytes``.
        """
        settings = replace(self.settings, weights=weights, constants_limit_bytes=limit_bytes)
        made = NetworkCompiler(self.module, self.name, self.board, settings)
        made.known.update(self.known)
        return made

    def ready(self, rewrite: str = "") -> Prepared:
        """Return the lowered network, rewritten by the rules ``rewrite``."""
        if rewrite not in self.known:
            self.known[rewrite] = kernels_of(self.module, replace(self.settings, rewrite=rewrite))
        return self.known[rewrite]

    def changes(self, rewrite: str) -> bool:
        """Return whether the rules ``rewrite`` change the network."""
        found = self.ready(rewrite).rewriting
        return found is not None and found.changed

    def _read(self) -> RowModule:
        ready = self.ready()
        moving = self.settings.sliding is not None  # attention of a moving window is computed anew
        return read_rows(ready.plain, self.name, ready.target, self.uncut, complete=not moving)

    def rows(self, overlap: bool = False) -> RowKernels:
        """Return the kernels of the network by rows.

        ``overlap``: rows of results may overlap dying rows of inputs. Raises :class:`InputError` if
        no layer can be split.
        """
        kernels = self.layers(overlap)
        check_splittable(kernels.network)
        return kernels

    def layers(self, overlap: bool = False) -> RowKernels:
        """Return the kernels of the network by rows; layers without rows stay unsplit."""
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
            weights=self.settings.weights,
        )

    def unsplit(self, how: Settings) -> Compiled:
        """Return the network compiled operator by operator; ``how`` says all that differs.

        Constants that are copied to RAM come before workspace of faster kernels.
        """
        made = self._from_flash(how)
        if how.constants != RAM:
            return made
        copied = with_copies(made, self.board, how)
        if copied.placed.fits or not how.grows:
            return copied
        least = replace(how, workspace=LEAST)
        return with_copies(self._from_flash(least), self.board, least)

    def _from_flash(self, how: Settings) -> Compiled:
        """Return the same with constants in flash."""
        how = replace(how, constants=FLASH)
        known = next((made for settings, made in self.whole if settings == how), None)
        if known is not None:
            return known
        ready, writer = self.ready(how.rewrite), self._writer(how)
        made = compiled(self.module, ready, writer, self.name, self.board)
        of_region: dict[int | None, int] = {}
        for i, tensor in enumerate(made.tensors):
            of_region.setdefault(tensor, i)  # the first one, which callers see
        results = [of_region[t] for t in made.region.results]
        made = with_every_output(made, interface(self.module), results)
        self.whole.append((how, made))
        return made

    def _writer(self, how: Settings) -> UnsplitKernels:
        """Return the kernels in C, which depend on rewriting, overlap and weights alone."""
        key = how.rewrite, how.overlap, how.weights, how.constants_limit_bytes
        if key not in self.written:
            self.written[key] = written(self.ready(how.rewrite), self.name, self.board, how)
        return self.written[key].under(how)

    def in_bands(self, chosen: Choice, overlap: bool = False) -> Compiled:
        """Return the network compiled in the bands of ``chosen``, and in its tiles.

        ``chosen`` must be the result for the network of ``rows(overlap)``.
        """
        best, kernels = chosen.best, self.rows(overlap)
        if chosen.recomputed is not None:
            kernels = in_tiles(kernels, chosen.recomputed.tiles)
        kernels = in_bands(kernels, best.banded.heights)
        alignment = self.board.core.alignment_bytes
        room = rooms(self.board, self.settings.stack_bytes)
        placed, placement = on_board(best, room, alignment, self.settings.search_seconds)
        return self.from_rows(kernels, chosen, placed, placement, self.program_of(kernels, best))

    def program_of(
        self, kernels: RowKernels, best: Streaming, *beside: BandPlacement
    ) -> Callable[[RowKernels, BandPlacement], Program]:
        """Return a function of kernels and their places, which returns the program in bands.

        ``beside``: places in further memories.
        """
        network, alignment = kernels.network, self.board.core.alignment_bytes
        known = interface(self.module).of_tensors(network.inputs, kernels.rows.results)

        def program(taken: RowKernels, found: BandPlacement) -> Program:
            for other in beside:
                found = found.beside(other)
            return banded_program(taken, best, self.name, found, alignment, known)

        return program

    def from_rows(
        self,
        kernels: RowKernels,
        chosen: Choice,
        placed: MemoryMap,
        placement: BandPlacement,
        program: Callable[[RowKernels, BandPlacement], Program],
        more_room: Mapping[str, int] | None = None,
    ) -> Compiled:
        """Return a network in rows compiled, with workspace upgrades if the memory allows them.

        ``program``: a function that returns the program from the chosen kernels and their places.
        ``more_room``: the bytes that each arena may have with upgrades; by default those that the
        settings allow.
        """
        best, settings, ready = chosen.best, self.settings, self.ready()
        alignment = self.board.core.alignment_bytes
        met = placed.fits and settings.allows(sum(placed.arena_bytes.values()))
        room = rooms(self.board, settings.stack_bytes)
        more = more_room or (self._more_room(placed, room) if settings.grows and met else {})
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
        """Return the bytes that each arena may have with workspace upgrades.

        The rest of a limit of all arenas goes to the largest arena.
        """
        limit, held = self.settings.limit_bytes, placed.arena_bytes
        if limit is None:
            return {one.region.name: one.arena_bytes for one in room if one.region.name in held}
        main = max(held, key=lambda name: held[name])
        of_main = next(one.arena_bytes for one in room if one.region.name == main)
        return {main: min(of_main, held[main] + limit - sum(held.values()))}


def by_rows(maker: NetworkCompiler) -> Compiled:
    """Return the network in bands: of the given number of rows, else the coarsest that fit."""
    settings = maker.settings
    network = maker.rows(settings.overlap).network
    settings.notify("ordering and placing bands")
    most_bytes = settings.most_bytes(largest(rooms(maker.board, settings.stack_bytes)))
    chosen = _chosen(network, settings, most_bytes, _limits(settings))
    if settings.recompute is not None:
        chosen = _again(maker, chosen, settings.recompute, most_bytes)
    return maker.in_bands(chosen, settings.overlap)


def checked(made: Compiled) -> None:
    """Replay calls and transfers, and have bands and plans checked by the naive checkers."""
    if made.transfers is not None:
        check_transfers(made.transfers.graph, certificate(made.transfers))
        by_rows = made.chosen is not None
        checks = check_bands if by_rows else check_program
        checks(made.program, made.transfers.copied_bytes, made.transfers.touched_bytes)
    check(made.program)
    if made.chosen is not None:
        made.chosen.best.check()


def facts(made: Compiled) -> dict[str, Any]:
    """Return the facts of a compiled network for JSON: order, placement, bands, float operators."""
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
        "transfers": about_transfers(made),
        "sliding": made.program.steps_of_stream,
    }


def loose(module: tvm.IRModule, settings: Settings) -> str:
    """Return why outputs may deviate more from the model's runtime than the tolerance, or "".

    ``module``: the network in Relax, as it was imported.
    """
    off = settings.quantized == OFF and is_quantised(module)
    return "computed in float" if off or rounds_less(module["main"]) else ""


def _again(maker: NetworkCompiler, plain: Choice, factor: float, most_bytes: int) -> Choice:
    """Return the better one of ``plain`` and the same network with chains of layers in tiles.

    If no number of rows was given and ``plain`` fits, there is no recomputation.
    """
    settings, kernels = maker.settings, maker.rows()  # without overlap, which is placed afterwards
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
