"""A network compiled for a board: whole, or by rows, and what JSON says of it."""

from dataclasses import replace
from typing import Any

import tvm

from tvm_serenity.boards import Board
from tvm_serenity.firmware.check import check
from tvm_serenity.firmware.emit.table import tables
from tvm_serenity.firmware.memory import rooms
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.firmware.tir.banded import banded_program, sources
from tvm_serenity.firmware.tir.compiled import Compiled
from tvm_serenity.firmware.tir.interface import interface
from tvm_serenity.firmware.tir.lying import on_board
from tvm_serenity.firmware.tir.rows import row_kernels
from tvm_serenity.firmware.tir.whole import compiled, kernels_of
from tvm_serenity.quantize.choices import AUTO
from tvm_serenity.relax.pipeline import Prepared
from tvm_serenity.relax.quantize import is_quantised
from tvm_serenity.relax.rows_read import read_rows
from tvm_serenity.rows.choose import Choice, Goal, at_most_in_memory, check_splittable, choose
from tvm_serenity.rows.described import described
from tvm_serenity.rows.network import Network
from tvm_serenity.rows.split import heights_of
from tvm_serenity.rows.stream import Limits, stream


def make(module: tvm.IRModule, name: str, board: Board, settings: Settings) -> Compiled:
    """Return ``module`` (Relax, fresh) compiled for ``board``, whole or by rows.

    Whether it fits is said by ``placed``; with rows "auto" it is in rows only if it would not.
    """
    ready = kernels_of(module, settings)
    if settings.only_rows:
        return _by_rows(module, ready, name, board, settings)
    made = compiled(module, ready, name, board, settings)
    arena = sum(made.placed.arena_bytes.values())
    if settings.rows != AUTO or (made.placed.fits and settings.allows(arena)):
        return made
    return _by_rows(module, ready, name, board, settings)


def checked(made: Compiled) -> None:
    """Replay the calls, and have order and placement of bands checked by the naive checkers."""
    check(made.program)
    if made.chosen is not None:
        made.chosen.best.check()


def facts(made: Compiled) -> dict[str, Any]:
    """Return what JSON says of order, placement and bands, and what stayed float."""
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
        "rows": rows,
    }


def loose(module: tvm.IRModule, settings: Settings) -> str:
    """Return why outputs may be further from the model's own runtime than its rule says, or "".

    ``module`` is Relax as it was imported.
    """
    off = settings.quantized == "off" and is_quantised(module)
    return "computed in float" if off else ""


def _by_rows(
    module: tvm.IRModule, ready: Prepared, name: str, board: Board, settings: Settings
) -> Compiled:
    settings.notify("reading rows")
    rows = read_rows(ready.plain, name, ready.target)
    alignment = board.core.alignment_bytes
    kernels = row_kernels(rows, tuned=settings.tuned, alignment=alignment)
    network = kernels.network
    check_splittable(network)
    settings.notify("ordering and placing bands")
    room, limit = rooms(board, settings.stack_bytes), settings.limit_bytes
    largest = max(one.arena_bytes for one in room)
    chosen = _chosen(network, settings, largest if limit is None else min(largest, limit))
    best, seconds = chosen.best, settings.search_seconds
    placed, lying = on_board(best, room, alignment, seconds)
    met = placed.fits and settings.allows(sum(placed.arena_bytes.values()))
    known = interface(module, network.inputs, network.outputs)
    return Compiled(
        program=banded_program(kernels, best, name, lying, alignment, known),
        lowered=rows.lowered,
        region=rows.region,
        sources=sources(kernels),
        tensors=rows.tensor_of,
        placed=placed,
        peak_bytes=best.schedule.peak_bytes,
        lower_bound_bytes=best.lower_bound_bytes,
        kept_float=ready.kept_float,
        folded=ready.folded,
        chosen=replace(chosen, met=met),
    )


def _chosen(network: Network, settings: Settings, room: int) -> Choice:
    limits = Limits(settings.search_seconds)
    goal = Goal(max(room, 0))
    if settings.bands is None:
        return choose(network, goal, streamed=settings.stream_input, limits=limits)
    heights = heights_of(network, settings.bands)
    found = stream(network, heights, streamed=settings.stream_input, limits=limits)
    found = at_most_in_memory(found, limits)
    return Choice(found, goal.met(found), (found,), found.seconds)
