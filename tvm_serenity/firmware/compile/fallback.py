"""Compile a network as its settings say, or with the first fallback strategy that fits.

The strategies are tried in the order of their run time: kernels in place, rewriting, both; then
overlap of results with input rows; then the coarsest bands of rows that fit. A strategy that
contradicts an option is left out. Each tried strategy is recorded as an :class:`Attempt`, with its
arena or with the reason why it does not apply.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import tvm

from tvm_serenity.boards import Board
from tvm_serenity.errors import InputError, UnsupportedError
from tvm_serenity.firmware.board.fit import Attempt, constants_fit
from tvm_serenity.firmware.compile.compiled import Compiled
from tvm_serenity.firmware.compile.driver import NetworkCompiler, by_rows
from tvm_serenity.firmware.compile.sliding import in_steps
from tvm_serenity.firmware.compile.streamed_rows import streamed_by_rows
from tvm_serenity.firmware.settings import Settings
from tvm_serenity.options.memory import BEST
from tvm_serenity.quantize.choices import AUTO, OFF
from tvm_serenity.rows.described import rows_text


@dataclass(frozen=True, kw_only=True)
class UnsplitStrategy:
    """What is changed in an unsplit network; the fields mean what those of :class:`Settings` do."""

    rewritten: bool = False
    in_place: bool = False
    overlap: bool = False

    @property
    def text(self) -> str:
        """The name of the strategy in messages and results, such as "unsplit, in place"."""
        changes = {
            "rewritten": self.rewritten,
            "in place": self.in_place,
            "overlap": self.overlap,
        }
        return ", ".join(["unsplit", *(words for words, done in changes.items() if done)])

    def settings(self, common: Settings) -> Settings:
        """Return ``common`` with this strategy; the rewrite rules that ``common`` names stay.

        Raises :class:`InputError` if options of ``common`` conflict with the strategy.
        """
        rules = self.rules(common)
        return replace(common, rewrite=rules, in_place=self.in_place, overlap=self.overlap)

    def rules(self, common: Settings) -> str:
        """Return the rewrite rules that apply to ``common``, "" for none."""
        return (common.rewrite or "all") if self.rewritten else ""

    def keeps(self, settings: Settings) -> bool:
        """Return whether the strategy does everything that ``settings`` force."""
        return (
            self.rewritten >= bool(settings.rewrite)
            and self.in_place >= settings.in_place
            and self.overlap >= settings.overlap
        )


UNSPLIT_STRATEGIES = (
    UnsplitStrategy(),
    UnsplitStrategy(in_place=True),
    UnsplitStrategy(rewritten=True),
    UnsplitStrategy(rewritten=True, in_place=True),
    UnsplitStrategy(in_place=True, overlap=True),
    UnsplitStrategy(rewritten=True, in_place=True, overlap=True),
)
"""The strategies to try, the plain one first.

None has overlap without in place: overlap never needs more memory with it than alone.
"""


def make(module: tvm.IRModule, name: str, board: Board, settings: Settings) -> Compiled:
    """Return ``module`` (Relax, as read from the model) compiled for ``board``.

    ``placed.fits`` of the result says whether it fits. With rows "auto" the network runs in bands
    of rows only if the unsplit network does not fit; with "needed" the first strategy that fits is
    taken, or the one with the smallest arena if none fits. In two memories the network runs in
    bands of rows if that moves fewer bytes, unless rows are "off". If the constants alone
    exceed the flash, the unsplit network is returned: no strategy has fewer constants.
    """
    maker = NetworkCompiler(module, name, board, settings)
    if settings.sliding is not None:
        return _as_asked(in_steps, maker)
    if settings.only_rows:
        in_one = settings.fast_memory_bytes is None
        return _as_asked(by_rows if in_one else streamed_by_rows, maker)
    plain = maker.unsplit(settings)
    if plain.transfers is not None:
        return _in_fewest_bytes(maker, plain)
    flash_is_enough = constants_fit(board, plain.program.constant_bytes)
    if settings.rows == OFF or _fits(plain, settings) or not flash_is_enough:
        return plain
    if settings.rows == AUTO:
        return _as_asked(by_rows, maker)
    return _first_that_fits(maker, plain)


def _in_fewest_bytes(maker: NetworkCompiler, plain: Compiled) -> Compiled:
    """Return the unsplit network in two memories, or in bands if that moves fewer bytes."""
    settings, unsplit = maker.settings, plain.transfers
    assert unsplit is not None
    if settings.rows == OFF or unsplit.total_bytes == unsplit.compulsory_bytes:
        return plain
    try:
        replace(settings, rows=1)  # raises if an option conflicts with rows
        banded = streamed_by_rows(maker)
    except (InputError, UnsupportedError) as error:
        settings.notify(f"bands of rows: {error}")
        return plain
    assert banded.transfers is not None
    moved = unsplit.total_bytes, banded.transfers.total_bytes
    settings.notify(f"unsplit tensors move {moved[0]:,} bytes, {bands_text(banded)} {moved[1]:,}")
    return banded if banded.placed.fits and moved[1] < moved[0] else plain


def _as_asked(work: Callable[[NetworkCompiler], Compiled], maker: NetworkCompiler) -> Compiled:
    """Return the network in rows; if it has no rows, the error names the options that ask for them.

    ``work`` compiles it, and raises :class:`InputError` if no layer has rows.
    """
    try:
        return work(maker)
    except UnsupportedError:
        raise  # an operator is not supported, in rows or unsplit
    except InputError as error:
        asked = maker.settings.asked_rows
        raise InputError(f"{error}; build without {asked}") from None


def strategy_of(settings: Settings) -> UnsplitStrategy:
    """Return the strategy that ``settings`` force."""
    return UnsplitStrategy(
        rewritten=bool(settings.rewrite),
        in_place=settings.in_place,
        overlap=settings.overlap,
    )


def bands_text(made: Compiled, arriving: bool = False, overlap: bool = False) -> str:
    """Return the name of the strategy of a network in bands, such as "bands of 2 rows".

    ``arriving``: the rows of its input arrive one by one; ``overlap``: rows of results overlap
    rows of inputs.
    """
    assert made.chosen is not None
    rows = rows_text(made.chosen.best)
    more = ", input by rows" * arriving + ", overlap" * overlap
    again = made.chosen.recomputed
    if again is not None and again.tiles:
        more += f", tiles of columns, {again.work.factor - 1:.1%} computed again"
    return f"bands of {rows} row{'s' * (rows != '1')}{more}"


def _first_that_fits(maker: NetworkCompiler, plain: Compiled) -> Compiled:
    settings = maker.settings
    tried = [(_attempt(strategy_of(settings).text, plain, settings), plain)]
    refused = []
    settings.notify(f"{tried[0][0].text()}: trying fallback strategies")
    for attempt, candidate in _others(maker):
        if candidate is None:
            refused.append(attempt)
            continue
        tried.append((attempt, candidate))
        settings.notify(attempt.text())
        if attempt.fits:
            break
    _, best = min(tried, key=lambda one: (not one[0].fits, one[0].arena_bytes or 0))
    return replace(best, tried=(*(attempt for attempt, _ in tried), *refused))


def strategies(maker: NetworkCompiler) -> Iterator[UnsplitStrategy]:
    """Yield the strategies that include all requested settings and change the network.

    Rewriting changes nothing if no rule matches, or if the order is the model's own.
    """
    settings = maker.settings
    for strategy in UNSPLIT_STRATEGIES:
        rules = strategy.rules(settings)
        if strategy.keeps(settings) and (not strategy.rewritten or _rewrites(maker, rules)):
            yield strategy


def _others(maker: NetworkCompiler) -> Iterator[tuple[Attempt, Compiled | None]]:
    """Yield the strategies after the plain one, each compiled when it is asked for."""
    settings = maker.settings
    for strategy in UNSPLIT_STRATEGIES:
        if strategy.keeps(settings):
            yield from _unsplit(maker, strategy)
    try:
        replace(settings, rows=AUTO)  # raises if an option conflicts with rows
        banded = by_rows(maker)
        yield _attempt(bands_text(banded, overlap=settings.overlap), banded, settings), banded
    except (InputError, UnsupportedError) as error:
        yield Attempt("bands of rows", reason=str(error)), None


def _unsplit(
    maker: NetworkCompiler, strategy: UnsplitStrategy
) -> Iterator[tuple[Attempt, Compiled | None]]:
    """Yield the network with a strategy; nothing if the strategy changes nothing."""
    settings = maker.settings
    try:
        asked = strategy.settings(settings)
    except InputError as error:
        yield Attempt(strategy.text, reason=str(error)), None
        return
    rewrite = asked.rewrite
    if asked == settings or (rewrite != settings.rewrite and not _rewrites(maker, rewrite)):
        return
    candidate = maker.unsplit(asked)
    yield _attempt(strategy.text, candidate, settings), candidate


def _rewrites(maker: NetworkCompiler, rewrite: str) -> bool:
    """Return whether the rules change the network; the model's own order excludes rewriting."""
    return maker.settings.order == BEST and maker.changes(rewrite)


def _attempt(strategy: str, made: Compiled, settings: Settings) -> Attempt:
    return Attempt(strategy, sum(made.placed.arena_bytes.values()), _fits(made, settings))


def _fits(made: Compiled, settings: Settings) -> bool:
    return made.placed.fits and settings.allows(sum(made.placed.arena_bytes.values()))
