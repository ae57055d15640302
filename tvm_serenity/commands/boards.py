"""``boards``: list the known boards, or those that the best build of a model fits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tvm_serenity.boards import Board, board, names
from tvm_serenity.commands.models import ModelSource, source
from tvm_serenity.commands.progress import Progress, silent
from tvm_serenity.errors import SerenityError
from tvm_serenity.options.model import ReadOptions
from tvm_serenity.options.option import HelpGroup, Option, differing, option, values_of
from tvm_serenity.options.speed import TIME_LIMIT, TimeLimit


@dataclass(frozen=True, kw_only=True)
class BoardsOptions(ReadOptions, TimeLimit):
    """The options of ``boards``; ``fits``: a model whose best build for each board is searched.

    ``time_limit_s``: for the search on each board.
    """

    fits: str | None = option(
        None,
        Option(
            flag="--fits",
            help="Search the best build of this model for each board.",
            group=HelpGroup.MODEL,
            metavar="MODEL",
        ),
    )
    time_limit_s: float | None = option(
        None, differing(TIME_LIMIT, help="For the search on each board.", least=None, above=0)
    )


@dataclass(frozen=True)
class ListedBoard:
    """A board with the best build of a model as JSON; None without a model or without a build.

    ``why_not``: why the model cannot be built for the board, or "".
    """

    board: Board
    best: Mapping[str, Any] | None = None
    why_not: str = ""

    @property
    def fits(self) -> bool:
        """Whether the best build fits the board."""
        return self.best is not None and bool(self.best["fits"])


def boards(
    board_name: str | None = None, options: BoardsOptions | None = None, tell: Progress = silent
) -> list[ListedBoard]:
    """Return all known boards, or only the board of ``board_name`` (as :func:`boards.board` takes).

    With ``options.fits``, each has the best build of that model, as ``serenity build`` finds it,
    and the boards that it fits come first, by ascending RAM.
    """
    options = options or BoardsOptions()
    listed = [board(name) for name in (names() if board_name is None else [board_name])]
    if options.fits is None:
        return [ListedBoard(one) for one in listed]
    opened = source(options.fits, options)
    opened.check_operators()
    found = list(_best_of(opened, listed, options, tell))
    return sorted(found, key=lambda one: (not one.fits, one.board.ram_bytes, one.board.name))


def _best_of(
    opened: ModelSource, listed: list[Board], options: BoardsOptions, tell: Progress
) -> Iterator[ListedBoard]:
    from tvm_serenity.firmware.settings import Settings
    from tvm_serenity.fitting.best import BestBuilds
    from tvm_serenity.fitting.goal import FitGoal

    settings = Settings(**values_of(options, ReadOptions), check=False)
    builds = BestBuilds(opened.to_build(), settings)
    goal = FitGoal(time_limit_s=options.time_limit_s)
    for number, one in enumerate(listed, 1):
        with tell(f"{opened.spec} on {one.name}, board {number} of {len(listed)}"):
            try:
                yield ListedBoard(one, builds.on(one, goal))
            except SerenityError as error:
                yield ListedBoard(one, why_not=str(error))
