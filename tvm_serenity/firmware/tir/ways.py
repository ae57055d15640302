"""A network compiled as its settings say, or in the first way that fits where it does not whole.

Ways that take no more time come first: kernels that overwrite what dies, rewriting, both; then the
coarsest bands of rows that fit. What options decide stays decided, and a way that does not go with
them is left out; each that was tried is recorded, with its arena or with why it cannot be.
"""

from collections.abc import Iterator
from dataclasses import replace

import tvm

from tvm_serenity.boards import Board
from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.firmware.fit import Way
from tvm_serenity.firmware.settings import BEST, Settings
from tvm_serenity.firmware.tir.compiled import Compiled
from tvm_serenity.firmware.tir.made import Maker, by_rows
from tvm_serenity.quantize.choices import AUTO, OFF
from tvm_serenity.rows.described import rows_text

WHOLE = ((False, True), (True, False), (True, True))
"""Whether it is rewritten, and works in place: what is tried beside the plain one."""


def make(module: tvm.IRModule, name: str, board: Board, settings: Settings) -> Compiled:
    """Return ``module`` (Relax, fresh) compiled for ``board``, whole or by rows.

    Whether it fits is said by ``placed``. With rows "auto" it is in rows only if it would not fit
    whole, with "needed" in the first way that fits, or else in the one of the least arena.
    """
    maker = Maker(module, name, board, settings)
    if settings.only_rows:
        return by_rows(maker)
    made = maker.whole(settings.rewrite, settings.in_place)
    if settings.rows == OFF or _fits(made, settings):
        return made
    if settings.rows == AUTO:
        return by_rows(maker)
    return _first_that_fits(maker, made)


def how_whole(rewritten: bool, in_place: bool) -> str:
    """Return in words how a network is built that is not in bands."""
    return ", ".join(["whole", *["rewritten"] * rewritten, *["in place"] * in_place])


def how_in_bands(made: Compiled, arriving: bool = False) -> str:
    """Return the same of one in bands; ``arriving``: rows of its input come one by one."""
    assert made.chosen is not None
    rows = rows_text(made.chosen.best)
    return f"bands of {rows} row{'s' * (rows != '1')}{', input by rows' * arriving}"


def _first_that_fits(maker: Maker, plain: Compiled) -> Compiled:
    settings = maker.settings
    first = how_whole(bool(settings.rewrite), settings.in_place)
    tried = [(_way(first, plain, settings), plain)]
    refused = []
    settings.notify(f"{tried[0][0].text()}: looking for other ways")
    for way, made in _others(maker):
        if made is None:
            refused.append(way)
            continue
        tried.append((way, made))
        settings.notify(way.text())
        if way.fits:
            break
    _, best = min(tried, key=lambda one: (not one[0].fits, one[0].arena_bytes or 0))
    return replace(best, tried=(*(way for way, _ in tried), *refused))


def _others(maker: Maker) -> Iterator[tuple[Way, Compiled | None]]:
    """The ways after the plain one, each compiled when it is asked for."""
    settings = maker.settings
    given = bool(settings.rewrite), settings.in_place
    for rewritten, in_place in WHOLE:
        if (rewritten, in_place) == given or rewritten < given[0] or in_place < given[1]:
            continue
        yield from _whole(maker, settings.rewrite or "all" * rewritten, in_place)
    try:
        replace(settings, rows=AUTO)  # which refuses what rows do not go with
        made = by_rows(maker)
        yield _way(how_in_bands(made), made, settings), made
    except (InputError, UnsupportedError) as error:
        yield Way("bands of rows", reason=str(error)), None


def _whole(maker: Maker, rewrite: str, in_place: bool) -> Iterator[tuple[Way, Compiled | None]]:
    """The network so, nothing if it is the same as without rewriting."""
    settings, how = maker.settings, how_whole(bool(rewrite), in_place)
    try:
        asked = replace(settings, rewrite=rewrite, in_place=in_place)
    except InputError as error:
        yield Way(how, reason=str(error)), None
        return
    if rewrite != settings.rewrite and (settings.order != BEST or not maker.changes(rewrite)):
        return
    made = maker.whole(asked.rewrite, asked.in_place)
    yield _way(how, made, settings), made


def _way(how: str, made: Compiled, settings: Settings) -> Way:
    return Way(how, sum(made.placed.arena_bytes.values()), _fits(made, settings))


def _fits(made: Compiled, settings: Settings) -> bool:
    return made.placed.fits and settings.allows(sum(made.placed.arena_bytes.values()))
