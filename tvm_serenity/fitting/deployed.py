"""The figures of a network on a board, as plain numbers that processes can exchange."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tvm_serenity.boards import board as known_board
from tvm_serenity.firmware.board import image
from tvm_serenity.firmware.c_names import identifier
from tvm_serenity.firmware.compile.fallback import how_in_bands, make, way_of
from tvm_serenity.firmware.compile.model import opened
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.fitting.candidates import BuildCandidate
from tvm_serenity.fitting.measure import Spending, linked, timed, unlinked, untimeable
from tvm_serenity.fitting.shared import SharedObjects

if TYPE_CHECKING:
    from tvm_serenity.firmware.compile.model import Model

LONGEST_S = 600.0
"""One run, where there is no limit."""


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """A network on a board: the first way to build it that fits, or the one of the least arena.

    Bytes of ``flash_bytes`` count code where a compiler for the board is installed. ``run``: one
    run; None where ``untimed`` says why there is no time.
    """

    board: str
    how: str
    fits: bool
    arena_bytes: int
    ram_bytes: int
    flash_bytes: int
    run: Spending | None
    untimed: str


def deployed(model: "Model", board: str, time_limit_s: float | None = None) -> Deployed:
    """Return the sizes and the run time of ``model`` (as for ``firmware.build``) on ``board``.

    ``time_limit_s`` is for each search, and for the run. Raises what ``firmware.build`` raises,
    but nothing where it does not fit: the figures say so.
    """
    settings, target = Settings(time_limit_s=time_limit_s, check=False), known_board(board)
    given = opened(model, settings)
    module, file = given.module, given.file
    name = identifier(Path(file).stem if file else "model")
    made = make(module, name, target, settings)
    how = way_of(settings).how if made.chosen is None else how_in_bands(made)
    candidate = BuildCandidate(how, settings, made)
    found = unlinked(target, candidate)
    with tempfile.TemporaryDirectory(prefix="serenity.") as folder:
        if image.linkable() and found.fits:
            found = linked(target, SharedObjects(), candidate, Path(folder) / "0")
        untimed = untimeable(target) if found.fits else "does not fit"
        if not untimed:
            found, *_ = timed([found], target, Path(folder), 1, time_limit_s or LONGEST_S)
            untimed = found.untimed
    return Deployed(
        board=target.name,
        how=found.how,
        fits=found.fits,
        arena_bytes=found.arena_bytes,
        ram_bytes=found.ram_bytes,
        flash_bytes=found.flash_bytes,
        run=found.run,
        untimed=untimed,
    )
