"""A sweep over pairs of networks and boards: the first strategy that fits each pair.

Each pair is built in a child process, so that a crash or a timeout becomes a row that says so.
Pairs of one model share the work that does not depend on the board.
"""

import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_serenity.boards import Board
from tvm_serenity.errors import InputError, SerenityError, UnsupportedError
from tvm_serenity.firmware.board import image
from tvm_serenity.firmware.board.fit import boards_that_do
from tvm_serenity.firmware.c_names import identifier
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.fitting.shared import SharedObjects
from tvm_serenity.rows.limits import Limits
from tvm_serenity.search.deadline import within
from tvm_serenity.search.sweeps import PointFile, Row
from tvm_serenity.system.files import ZOO
from tvm_serenity.system.isolated import Death, isolated
from tvm_serenity.without_torch import without_torch

if TYPE_CHECKING:
    from tvm_serenity.firmware.compile.driver import NetworkCompiler
    from tvm_serenity.fitting.candidates import BuildCandidate
    from tvm_serenity.fitting.measure import BuildFigures

SEARCHING = 0.8
"""Share of a pair's time for its searches; the rest builds the best result."""
UNSPLIT, ROWS, FIT = "unsplit", "rows", "fit"
LEVERS = (UNSPLIT, ROWS, FIT)
"""The kinds of strategies by which a pair can fit, in the order they are tried: the best order of
the unsplit network; bands of rows; in place, overlap, rewriting and, if asked for, input rows that
arrive one by one."""
COLUMNS = (
    "model",
    "board",
    "fits_by",
    "strategy",
    "arena_bytes",
    "ram_bytes",
    "flash_bytes",
    "linked",
    "why_not",
    "boards",
    "seconds",
)


@dataclass(frozen=True)
class ModelOnBoards:
    """The pairs of one model with several boards; each pair takes at most ``seconds``.

    ``settings.time_limit_s`` limits each of about a dozen searches. ``arriving``: rows of the
    input may arrive one by one, which changes how the network is called.
    """

    model: str
    boards: tuple[Board, ...]
    settings: Settings
    seconds: float
    arriving: bool = False

    def key(self) -> str:
        """Return a digest of all inputs of the rows, including the content of a model file."""
        names = [one.name for one in fields(Settings) if one.name != "notify"]
        values = [getattr(self.settings, name) for name in names]
        said = repr((self.model, self.boards, values, self.seconds, self.arriving)).encode()
        file = Path(self.model)
        content = file.read_bytes() if file.is_file() else b""
        return hashlib.sha256(said + content).hexdigest()[:24]

    def rows(self) -> list[Row]:
        """Return a row for each board, in their order."""
        with without_torch():  # a process of a sweep may have imported nothing yet
            import tvm_serenity.firmware.compile.driver  # noqa: F401  (TVM, once for all children)

        rows: list[Row] = []
        while len(rows) < len(self.boards):
            left = self.boards[len(rows) :]
            child = isolated(partial(self.pairs, left), self.seconds)
            try:
                for row in child:
                    rows.append(row)
            except Death as death:
                rows.append(self.row(self.boards[len(rows)], why_not=str(death)))
            finally:
                child.close()
        return rows

    def pairs(self, boards: Sequence[Board]) -> Iterator[Row]:
        """Yield a row for each of ``boards``, until the process ends."""
        from tvm_serenity.firmware.building import check_compilers
        from tvm_serenity.firmware.compile.driver import NetworkCompiler
        from tvm_serenity.firmware.compile.model import opened

        try:
            module = opened(self.model, self.settings).module
        except SerenityError as error:
            yield from (self.row(board, why_not=str(error)) for board in boards)
            return
        name = identifier(Path(self.model.removeprefix(ZOO).partition("?")[0]).stem)
        known: dict[str, Any] = {}
        for board in boards:
            started = time.perf_counter()
            maker = NetworkCompiler(module, name, board, self.settings)
            maker.known.update(known)
            try:
                check_compilers(board, self.settings)
                with within(SEARCHING * self.seconds):
                    row = self.pair(maker)
            except SerenityError as error:
                row = self.row(board, why_not=str(error))
            known = maker.known
            yield {**row, "seconds": round(time.perf_counter() - started, 2)}

    def pair(self, maker: "NetworkCompiler") -> Row:
        """Return the row of the first build that fits, or of the build with the least RAM."""
        tried: list[BuildFigures] = []
        refused: list[str] = []
        with tempfile.TemporaryDirectory(prefix="serenity.") as folder:
            for lever, strategy in self.strategies(maker):
                try:
                    candidate = strategy()
                except (InputError, UnsupportedError) as error:
                    if lever == UNSPLIT:
                        raise
                    refused.append(str(error))
                    continue
                one = _measured(maker.board, candidate, Path(folder) / str(len(tried)))
                if one.fits:
                    return self.row(maker.board, lever, one)
                tried.append(one)
                if _flash_is_short(one):
                    break  # no later strategy has fewer constants
        least = min(tried, key=lambda one: one.ram_bytes)
        lines = [line for line in least.taken.lines if line.shortfall_bytes]
        short = [f"{line.region} {line.shortfall_bytes:,}" for line in lines]
        said = [f"bytes short: {', '.join(short)}", *dict.fromkeys(refused)]
        return self.row(maker.board, None, least, "; ".join(said))

    def strategies(
        self, maker: "NetworkCompiler"
    ) -> Iterator[tuple[str, Callable[[], "BuildCandidate"]]]:
        """Yield the strategies in turn, each with its kind (of ``LEVERS``)."""
        from tvm_serenity.firmware.compile.fallback import UNSPLIT_STRATEGIES
        from tvm_serenity.fitting.candidates import coarsest_rows, unsplit_as

        limits = Limits(self.settings.search_seconds)
        plain, *others = UNSPLIT_STRATEGIES
        yield UNSPLIT, partial(unsplit_as, maker, plain)
        yield ROWS, partial(coarsest_rows, maker, False, limits)
        for strategy in others:
            if not strategy.rewritten or maker.changes("all"):
                yield FIT, partial(unsplit_as, maker, strategy)
        if self.arriving:
            yield FIT, partial(coarsest_rows, maker, True, limits)

    def row(
        self,
        board: Board,
        lever: str | None = None,
        one: "BuildFigures | None" = None,
        why_not: str = "",
    ) -> Row:
        """Return the row of one pair."""
        said: Row = dict.fromkeys(COLUMNS)
        said |= {"model": self.model, "board": board.name, "fits_by": lever, "seconds": 0.0}
        said |= {"why_not": why_not or None, "boards": []}
        if one is not None:
            stack = self.settings.stack_bytes
            do = boards_that_do(one.arena_bytes, one.flash_bytes, stack)
            said |= {"strategy": one.strategy, "arena_bytes": one.arena_bytes}
            said |= {"ram_bytes": one.ram_bytes, "flash_bytes": one.flash_bytes}
            said |= {"linked": one.linked}
            said |= {"boards": [] if lever else list(do)}
        return said


def _measured(board: Board, candidate: "BuildCandidate", place: Path) -> "BuildFigures":
    """Return the figures of a candidate; linked with its code if the code decides the fit."""
    from tvm_serenity.fitting.measure import linked, unlinked

    one = unlinked(board, candidate)
    if not one.fits or not image.linkable(board.architecture):
        return one
    return linked(board, SharedObjects(), candidate, place)


def _flash_is_short(one: "BuildFigures") -> bool:
    return one.taken.lines[0].shortfall_bytes > 0


def points(
    models: Sequence[str],
    boards: Sequence[Board],
    settings: Settings,
    seconds: float,
    arriving: bool = False,
) -> list[ModelOnBoards]:
    """Return the work of all pairs; raise :class:`InputError` if there is no pair."""
    if not models or not boards:
        raise InputError("no pairs: name at least one model and one board")
    named = tuple(boards)
    return [
        ModelOnBoards(model, named, settings, seconds, arriving) for model in dict.fromkeys(models)
    ]


def counts(rows: Sequence[Row]) -> dict[str, int]:
    """Return the cumulative number of pairs that fit with each strategy."""
    by = [LEVERS.index(row["fits_by"]) for row in rows if row["fits_by"] is not None]
    return {lever: sum(one <= index for one in by) for index, lever in enumerate(LEVERS)}


def point_file(path: Path) -> PointFile:
    """Return the file ``path`` of finished points of a sweep."""
    return PointFile(path, "fit_points", COLUMNS)
