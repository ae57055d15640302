"""The figures of a network on a board, as plain numbers that processes can exchange."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tvm_serenity.boards import board as known_board
from tvm_serenity.firmware.board import image
from tvm_serenity.firmware.c_names import identifier
from tvm_serenity.firmware.compile.fallback import bands_text, make, strategy_of
from tvm_serenity.firmware.compile.model import opened
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.fitting.candidates import BuildCandidate
from tvm_serenity.fitting.measure import Spending, linked, timed, unlinked, untimeable
from tvm_serenity.fitting.shared import SharedObjects

if TYPE_CHECKING:
    from tvm_serenity.firmware.compile.model import Model

LONGEST_S = 600.0
"""The time limit of one run, in seconds, if none is given."""


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """The figures of a network on a board, built with the first strategy that fits.

    If none fits, they are those of the build with the smallest arena. ``flash_bytes`` counts code
    if a compiler for the board is installed. ``run``: the cost of one run, None if there is no
    time; ``untimed`` says why.
    """

    board: str
    strategy: str
    fits: bool
    arena_bytes: int
    ram_bytes: int
    flash_bytes: int
    run: Spending | None
    untimed: str


def deployed(model: "Model", board: str, time_limit_s: float | None = None) -> Deployed:
    """Return the sizes and the run time of ``model`` (as for ``firmware.build``) on ``board``.

    ``time_limit_s`` limits each search, and the run. Raises what ``firmware.build`` raises, but no
    error if the model does not fit: ``fits`` of the result says so.
    """
    settings, target = Settings(time_limit_s=time_limit_s, check=False), known_board(board)
    given = opened(model, settings)
    module, file = given.module, given.file
    name = identifier(Path(file).stem if file else "model")
    made = make(module, name, target, settings)
    strategy = strategy_of(settings).text if made.chosen is None else bands_text(made)
    candidate = BuildCandidate(strategy, settings, made)
    figures = unlinked(target, candidate)
    with tempfile.TemporaryDirectory(prefix="serenity.") as folder:
        if image.linkable(target.architecture) and figures.fits:
            figures = linked(target, SharedObjects(), candidate, Path(folder) / "0")
        untimed = untimeable(target) if figures.fits else "does not fit"
        if not untimed:
            figures, *_ = timed([figures], target, Path(folder), 1, time_limit_s or LONGEST_S)
            untimed = figures.untimed
    return Deployed(
        board=target.name,
        strategy=figures.strategy,
        fits=figures.fits,
        arena_bytes=figures.arena_bytes,
        ram_bytes=figures.ram_bytes,
        flash_bytes=figures.flash_bytes,
        run=figures.run,
        untimed=untimed,
    )
