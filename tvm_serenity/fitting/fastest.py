"""The few builds that can be the fastest on a board; they are compiled within seconds.

An unsplit network calls each kernel once. Bands of rows cost more calls and never save one, so they
are tried only if no unsplit build fits, and only the coarsest bands that fit. The first unsplit
build that gives every operator its cheapest kernel ends the search: other strategies change the
size of the arena, not which kernels run.
"""

from collections.abc import Iterator
from dataclasses import replace

from tvm_serenity.boards import Board
from tvm_serenity.cycles.board import board_timing
from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.firmware.compile.driver import NetworkCompiler
from tvm_serenity.firmware.compile.fallback import strategies
from tvm_serenity.firmware.select.choices import FULL
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.fitting.candidates import (
    BuildCandidate,
    as_asked,
    coarsest_rows,
    goes_by_rows,
    unsplit_as,
)
from tvm_serenity.options.memory import FLASH, RAM
from tvm_serenity.options.speed import GROW
from tvm_serenity.quantize.choices import OFF
from tvm_serenity.rows.limits import Limits


def fastest(maker: NetworkCompiler, limits: Limits) -> Iterator[BuildCandidate]:
    """Yield the unsplit builds that can be the fastest; bands of rows if none of them fits.

    ``maker.settings`` may force what the search chooses: ``in_place``, ``overlap``, ``rewrite``,
    ``constants="ram"`` and ``rows="off"``. ``limits`` apply to each search for bands.
    """
    settings = maker.settings
    if settings.only_rows:
        yield as_asked(maker, GROW)
        return
    places = [RAM, FLASH] if reads_flash_slowly(maker.board) else [FLASH]
    if settings.constants == RAM:
        places = [RAM]
    fits = False
    for strategy in strategies(maker):
        complete = True
        for constants in tuple(places):
            one = unsplit_as(maker, strategy, workspace=GROW, constants=constants)
            yield one
            allowed = fits_board(one, settings)
            fits |= allowed
            complete &= allowed and has_cheapest_kernels(one)
            if constants == RAM and one.made.program.copied_bytes > maker.board.ram_bytes:
                places.remove(RAM)  # no arena leaves room for them
        if complete:
            return
    if fits or settings.rows == OFF or not goes_by_rows(settings):
        return
    in_rows = NetworkCompiler(
        maker.module, maker.name, maker.board, replace(settings, workspace=GROW)
    )
    try:
        for overlap in dict.fromkeys((settings.overlap, True)):
            one = coarsest_rows(in_rows, False, limits, overlap=overlap)
            yield one
            if fits_board(one, settings):
                return
    except (InputError, UnsupportedError) as error:
        settings.notify(f"no bands of rows: {error}")


def fits_board(one: BuildCandidate, settings: Settings) -> bool:
    """Return whether a candidate fits the memories of the board and the given limits."""
    made = one.made
    return made.placed.fits and settings.allows(one.arena_bytes, made.program.copied_bytes)


def has_cheapest_kernels(one: BuildCandidate) -> bool:
    """Return whether each operator has its cheapest kernel, none rejected for lack of memory."""
    return not any(k.reason == FULL for choice in one.made.choices for k in choice.candidates)


def reads_flash_slowly(board: Board) -> bool:
    """Return whether the timing model of the board has wait states for flash."""
    timing = board_timing(board)
    if timing is None:
        return False
    flash = {region.name for region in board.regions if region.kind == "flash"}
    return any(
        memory.wait_states(timing.clock_mhz) > 0
        for memory in timing.memories
        if memory.region in flash
    )
