"""The best build of a model for a board, as ``explain`` and ``report`` state it."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from tvm_serenity.boards import Board
from tvm_serenity.commands.models import ModelSource
from tvm_serenity.commands.progress import Progress
from tvm_serenity.errors import SerenityError
from tvm_serenity.explain import Claim, unbuilt_claim
from tvm_serenity.frontends.formats import compiles
from tvm_serenity.options.board import BoardOrChip
from tvm_serenity.options.memory import Views
from tvm_serenity.options.model import ReadOptions
from tvm_serenity.options.option import values_of
from tvm_serenity.options.speed import TimeLimit
from tvm_serenity.search.deadline import seconds_left


@dataclass(frozen=True, kw_only=True)
class BoardOptions(TimeLimit, Views, ReadOptions, BoardOrChip):
    """``target``: search the best build for this board, beside what ordering alone gives."""


@dataclass(frozen=True)
class Question:
    """What is asked about a model, and the best build where a board is asked about.

    ``built``: whether ``serenity build`` takes the model. ``spec``: the board as the user named it.
    ``best``: the best build as JSON, or why there is none.
    """

    model: str
    built: bool
    board: Board | None = None
    spec: str = ""
    best: Mapping[str, Any] | Claim | None = None


def question(
    opened: ModelSource, options: BoardOptions, board: Board | None, tell: Progress
) -> Question:
    """Return what is asked about a model, with the best build for ``board``."""
    built = opened.is_zoo or compiles(opened.file())
    if board is None:
        return Question(opened.spec, built)
    best = _best_build(opened, options, board, tell)
    return Question(opened.spec, built, board, options.target or board.name, best)


def _best_build(
    opened: ModelSource, options: BoardOptions, board: Board, tell: Progress
) -> Mapping[str, Any] | Claim:
    """Return the best build of a model for ``board`` as JSON, or the claim why there is none.

    The search is that of ``serenity build``; its result is kept in the cache.
    """
    if not opened.is_zoo and not compiles(opened.file()):
        return unbuilt_claim(board, "the operators of this format cannot be compiled")
    left = seconds_left(inf)
    if left == 0:
        return unbuilt_claim(board, "there was no time to search; give a longer --time-limit")
    from tvm_serenity.firmware.settings import Settings
    from tvm_serenity.fitting.best import BestBuilds
    from tvm_serenity.fitting.goal import FitGoal

    settings = Settings(**values_of(options, ReadOptions), check=False)
    goal = FitGoal(time_limit_s=None if left == inf else left)
    try:
        opened.check_operators()
        with tell(f"searching the best build for {board.name}"):
            return BestBuilds(opened.to_build(), settings).on(board, goal)
    except SerenityError as error:
        return unbuilt_claim(board, str(error))
